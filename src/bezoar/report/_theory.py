"""What the theory says of a network, laid out for the terminal and the report, without torch."""

from collections.abc import Callable, Sequence
from typing import Any

from bezoar._numbers import count, listed, number
from bezoar.networks import Network
from bezoar.report._curves import Panel
from bezoar.report._page import Page, Table
from bezoar.theory import MATRIX_OF

#: The quantities of worst placements, as the paper writes them.
QUANTITIES = {"delta_max": "δ_max", "lambda uniform": "λ uniform", "lambda mixing": "λ mixing"}


def describe(network: Network) -> str:
    """Agents, edges and who is poisoned, in words."""
    agents, edges = count(network.agents, "agent"), count(network.adjacency.nnz // 2, "edge")
    return f"{agents}, {edges}; poisoned: {listed(network.poisoned)}"


def theory_page(
    title: str,
    network: Network,
    found: dict[str, Any],
    notes: Sequence[str] = (),
    label: Callable[[str], str] = str,
) -> Page:
    """Which theorem applies, Tables I and II, and the worst placement, for one network.

    Args:
        title: a heading.
        network: the network.
        found: what :func:`bezoar.theory.overview` says of it.
        notes: further sentences for the caption.
        label: what to call a rule, given its name.
    """
    agent = found["delta_max_agent"]
    pieces = found["connectivity"]["uniform"]["components"]
    sentences = [
        f"δ = {number(found['delta'])} of all agents; δ_max = {number(found['delta_max'])} (agent "
        f"{agent}: {network.poisoned_inputs[agent]} of {network.degrees[agent] + 1} inputs).",
        f"The regular agents fall into {pieces} pieces: no robust rule can join them."
        if pieces > 1
        else "",
        *notes,
        f"In one sentence: {found['verdict']}",
    ]
    tables = [_theorems(found, label), _table_1(found, label), _table_2(found), _worst(found)]
    return Page(
        name="theory",
        title=title,
        caption="\n".join(filter(None, sentences)),
        tables=tuple(table for table in tables if table.rows),
        panels=(Panel(title, network=network),),
    )


def _theorems(found: dict[str, Any], label: Callable[[str], str]) -> Table:
    rows = []
    for kind, connected in found["connectivity"].items():
        rules = ", ".join(label(rule) for rule, matrix in MATRIX_OF.items() if matrix == kind)
        if connected["lambda_below_one"]:
            guarantee = f"Theorem 1 where ρ < {connected['room_for_rho']:.3g}"
        else:
            guarantee = "none: λ ≥ 1"
        values = (_readable(connected[name]) for name in ("lambda", "beta"))
        rows.append((rules, guarantee, f"λ {kind}", *values))
    mean = found["weighted_mean"]
    guarantee = "none: λ' ≥ 1"
    if mean["lambda_prime_below_one"]:
        guarantee = f"Theorem 2 where K ≥ {mean['iterations_over_smoothness_squared']:.3g} L²"
    rows.append((label("weighted_mean"), guarantee, "λ'", _readable(mean["lambda_prime"]), "–"))
    title = "Which theorem applies: Theorem 1 needs λ < 1 and ρ < (1−λ)/4, Theorem 2 λ' < 1"
    return Table.of(title, ("rules", "guarantee", "constant", "value", "β"), rows)


def _table_1(found: dict[str, Any], label: Callable[[str], str]) -> Table:
    rows = (
        (
            label(row["aggregator"]),
            row["order"],
            _readable(row["value"]),
            _readable(row["room"]) if row["room"] else "none",
        )
        for row in found["table_1"]
    )
    title = "Table I: orders of ρ at this δ_max, without constants"
    return Table.of(title, ("rule", "order", "value", "room left"), rows)


def _table_2(found: dict[str, Any]) -> Table:
    names = {"RAgg": "best majority-dominant"}
    rows = (
        (names.get(r["aggregator"], r["aggregator"]), r["order"], f"{_readable(r['value'])} ξ²")
        for r in found["table_2"]
    )
    title = "Table II: orders of the learning error where A = Θ(ξ)"
    return Table.of(title, ("rule", "order", "value"), rows)


def _worst(found: dict[str, Any]) -> Table:
    worst = found["worst_placement"]
    rows = (
        (
            QUANTITIES[row["quantity"]],
            _readable(row["now"]),
            _readable(row["value"]),
            "exact" if row["exact"] else _readable(row["bound"]),
            listed(row["poisoned"]),
        )
        for row in worst
    )
    agents = count(worst[0]["agents"], "poisoned agent") if worst else ""
    columns = ("quantity", "now", "worst", "at most", "poisoned there")
    return Table.of(f"Worst placement of {agents}", columns, rows)


def _readable(value: float) -> str:
    """A number in few characters; zero where only rounding is left of it."""
    return "∞" if value == float("inf") else number(value if abs(value) > 1e-12 else 0.0)
