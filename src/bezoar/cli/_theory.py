"""``bezoar theory``: what the theory says of a network, on one page and without torch."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from bezoar import networks, theory
from bezoar._choices import read_choice
from bezoar._errors import BezoarError
from bezoar.cli._options import read_poisoned
from bezoar.cli._screen import console, number, print_json, print_table
from bezoar.networks import Network

#: The paper's names of the rules it has theorems for.
LABELS = {
    "weighted_mean": "WeiMean",
    "trimmed_mean": "TriMean",
    "faba": "FABA",
    "centered_clipping": "CC",
    "clipped_gossip": "CG",
    "ios": "IOS",
    "rfa": "RFA",
}

#: Agents that are listed by number.
LISTED = 8


def show_theory(network: str, poisoned: str | None, rules: Sequence[str], json: bool) -> None:
    """Print what the theory says of a network."""
    name, options = _choice("network", network)
    who = None if poisoned is None else read_poisoned(poisoned)
    made = networks.create_poisoned(name, options, who)
    chosen = [_rule(text, made) for text in rules]
    report = theory_report(made, chosen)
    if json:
        print_json(report)
    else:
        _print(network, made, report)


def theory_report(network: Network, rules: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Everything on the page, as a document.

    Args:
        network: the network.
        rules: the rules asked about, with ``aggregator``, ``mixing`` (``None`` if any will do)
            and ``impossible``; by default all of Table I.
    """
    asked = {rule["aggregator"] for rule in rules}
    found = theory.overview(network, _common_mixing(rules), asked)
    last = {key: found.pop(key) for key in ("worst_placement", "verdict")}
    return found | {"rules": list(rules)} | last


def _choice(field: str, text: str) -> tuple[str, dict[str, Any]]:
    try:
        return read_choice(text)
    except BezoarError as error:
        raise BezoarError(f"{field}: {error}") from None


def _rule(text: str, network: Network) -> dict[str, Any]:
    """A rule asked about: its name, its mixing matrix, and why it is impossible here, if it is."""
    from bezoar import aggregators  # imports torch

    name, options = _choice("aggregator", text)
    rule = aggregators.create(name, **options)
    impossible = None
    try:
        rule.check(network)
    except BezoarError as error:
        impossible = str(error)
    return {"aggregator": name, "mixing": options.get("mixing"), "impossible": impossible}


def _common_mixing(rules: Sequence[dict[str, Any]]) -> str:
    """The mixing matrix that the rules ask for; one page is about one."""
    asked = list(dict.fromkeys(rule["mixing"] for rule in rules if rule["mixing"]))
    if len(asked) > 1:
        raise BezoarError(
            f"aggregator: expected one mixing matrix for all rules, found {' and '.join(asked)}"
        )
    return asked[0] if asked else "metropolis"


def _settled(value: float) -> float:
    """Zero where only rounding is left of it."""
    return value if abs(value) > 1e-12 else 0.0


def _agents(agents: Sequence[int]) -> str:
    if not agents:
        return "nobody"
    if len(agents) <= LISTED:
        return ", ".join(map(str, agents))
    return f"{', '.join(map(str, agents[:LISTED]))}, … ({len(agents)} in all)"


def _print(title: str, network: Network, report: dict[str, Any]) -> None:
    agent = report["delta_max_agent"]
    console.print(
        f"[bold]{title}[/]: {report['agents']} agents, {report['edges']} edges; poisoned: "
        f"{_agents(report['poisoned'])}"
    )
    console.print(
        f"δ = {number(report['delta'])} of all agents; δ_max = {number(report['delta_max'])} "
        f"(agent {agent}: {network.poisoned_inputs[agent]} of {network.degrees[agent] + 1} "
        "inputs)\n"
    )
    _print_guarantees(report)
    _print_tables(report)
    _print_worst(report)
    for rule in report["rules"]:
        if rule["impossible"]:
            console.print(f"[bold red]{rule['impossible']}[/]")
        elif rule["aggregator"] not in LABELS:
            console.print(f"{rule['aggregator']}: no contraction constant ρ is known.")
    console.print(f"[bold]In one sentence:[/] {report['verdict']}")


def _print_guarantees(report: dict[str, Any]) -> None:
    rows = []
    for kind, found in report["connectivity"].items():
        rules = [LABELS[rule] for rule, matrix in theory.MATRIX_OF.items() if matrix == kind]
        below = found["lambda_below_one"]
        rows.append(
            [
                f"{kind} ({', '.join(rules)})",
                number(_settled(found["lambda"])),
                number(found["beta"]),
                "holds" if below else "fails",
                f"ρ < {number(found['room_for_rho'])}" if below else "none",
            ]
        )
    print_table(
        "Theorem 1, robust rules: needs λ < 1 and ρ < (1−λ)/4",
        ["virtual mixing matrix", "λ", "β", "λ < 1", "room left"],
        rows,
    )
    pieces = report["connectivity"]["uniform"]["components"]
    if pieces > 1:
        console.print(
            f"The regular agents fall into {pieces} pieces: no robust rule can join them."
        )
    mean = report["weighted_mean"]
    verdict = "holds" if mean["lambda_prime_below_one"] else "fails"
    console.print(
        f"[bold]Theorem 2, weighted mean[/] ({report['mixing']}): needs λ' < 1\n"
        f"λ' = {mean['lambda_prime']:.6f}: {verdict}, with "
        f"K ≥ {number(mean['iterations_over_smoothness_squared'])}·L² iterations\n"
    )


def _print_tables(report: dict[str, Any]) -> None:
    if report["table_1"]:
        print_table(
            "Table I: orders of ρ at this δ_max, without constants",
            ["rule", "order", "value", "room left", "order below room"],
            [
                [
                    LABELS[row["aggregator"]],
                    row["order"],
                    number(row["value"]) if isfinite(row["value"]) else "∞",
                    number(row["room"]) if row["room"] else "none",
                    "yes" if row["value"] < row["room"] else "no",
                ]
                for row in report["table_1"]
            ],
        )
    print_table(
        "Table II: orders of the learning error where A = Θ(ξ)",
        ["rule", "order", "value"],
        [
            [
                "best majority-dominant" if row["aggregator"] == "RAgg" else row["aggregator"],
                row["order"],
                f"{number(row['value'])} ξ²",
            ]
            for row in report["table_2"]
        ],
    )


def _print_worst(report: dict[str, Any]) -> None:
    if not report["worst_placement"]:
        return
    count = report["worst_placement"][0]["agents"]
    names = {"delta_max": "δ_max", "lambda uniform": "λ uniform", "lambda mixing": "λ mixing"}
    print_table(
        f"Worst placement of {count} poisoned agent{'s' if count > 1 else ''}",
        ["quantity", "now", "worst", "at most", "poisoned there"],
        [
            [
                names[row["quantity"]],
                number(_settled(row["now"])),
                number(_settled(row["value"])),
                "exact" if row["exact"] else number(row["bound"]),
                _agents(row["poisoned"]),
            ]
            for row in report["worst_placement"]
        ],
    )
