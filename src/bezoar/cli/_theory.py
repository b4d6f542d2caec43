"""``bezoar theory``: what the theory says of a network, on one page and without torch."""

from collections.abc import Sequence
from dataclasses import asdict
from math import inf, isfinite
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

#: Matrix entries to look at in search of the worst placement: a second or two.
EFFORT = 4_000_000

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
    mixing = _common_mixing(rules)
    rates = theory.contamination(network)
    connected = {kind: theory.connectivity(network, kind, mixing) for kind in theory.KINDS}
    gap = theory.mixing_gap(network, mixing)
    asked = {rule["aggregator"] for rule in rules} or set(LABELS)
    orders = [
        asdict(row) | {"room": _room(connected[row.matrix].lam)}
        for row in theory.contraction_orders(rates.delta_max)
        if row.aggregator in asked
    ]
    count = min(max(1, len(network.poisoned)), network.agents - 1)
    worst = [theory.worst_contamination(network, count)] if count else []
    worst += [
        theory.worst_connectivity(network, count, kind, mixing, EFFORT)
        for kind in theory.KINDS
        if count
    ]
    now = [rates.delta_max, *(connected[kind].lam for kind in theory.KINDS)]
    report: dict[str, Any] = {
        "network": network.name,
        "agents": network.agents,
        "edges": network.adjacency.nnz // 2,
        "poisoned": list(network.poisoned),
        "mixing": mixing,
        "delta": rates.delta,
        "delta_max": rates.delta_max,
        "delta_max_agent": rates.agent,
        "connectivity": {
            kind: {
                "lambda": found.lam,
                "beta": found.beta,
                "components": found.components,
                "lambda_below_one": found.lam < 1,
                "room_for_rho": _room(found.lam),
            }
            for kind, found in connected.items()
        },
        "weighted_mean": {
            "lambda_prime": gap,
            "lambda_prime_below_one": gap < 1,
            "iterations_over_smoothness_squared": _iterations(gap),
        },
        "table_1": orders,
        "table_2": [asdict(row) for row in theory.learning_error_orders(rates)],
        "rules": list(rules),
        "worst_placement": [
            {**asdict(found), "gap": found.gap, "now": value, "agents": count}
            for found, value in zip(worst, now, strict=False)
        ],
    }
    return report | {"verdict": _verdict(report)}


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


def _room(lam: float) -> float:
    """What Theorem 1 leaves for ``ρ``: ``(1−λ)/4``, nothing where ``λ ≥ 1``."""
    return max(0.0, (1 - lam) / 4)


def _iterations(gap: float) -> float:
    """The least ``K/L²`` of Theorem 2."""
    return max(24 * (gap / (1 - gap)) ** 2, 1.0) if gap < 1 else inf


def _verdict(report: dict[str, Any]) -> str:
    """In one sentence, the weighted mean against robust rules."""
    delta, delta_max = report["delta"], report["delta_max"]
    if not report["poisoned"]:
        return (
            "Nobody is poisoned, so there is nothing to guard against: the weighted mean's error "
            "vanishes as K grows, on any connected network."
        )
    connected = report["connectivity"].values()
    fitting = [kind for kind, found in report["connectivity"].items() if found["lambda_below_one"]]
    if not fitting:
        pieces = max(found["components"] for found in connected)
        reason = f"the regular agents fall into {pieces} pieces" if pieces > 1 else "λ ≥ 1"
        guarantee = f"robust rules have no guarantee here ({reason})"
    else:
        guarantee = (
            f"robust rules are covered only while their ρ stays below "
            f"{max(found['room_for_rho'] for found in connected):.3g}"
        )
    if delta_max > delta * (1 + 1e-12):
        times = f"{(delta_max / delta) ** 2:.3g}"
        return (
            f"With very different local data (A = Θ(ξ)) the weighted mean has the smaller error, "
            f"of order δ²ξ² against δ_max²ξ², {times} times less than the best majority-dominant "
            f"rule, and {guarantee}."
        )
    if delta > delta_max * (1 + 1e-12):
        times = f"{(delta / delta_max) ** 2:.3g} times" if delta_max else "beyond all measure"
        return (
            f"The best majority-dominant rule has the smaller order of error here, δ_max²ξ² "
            f"against δ²ξ² of the weighted mean ({times} less), but {guarantee}."
        )
    return (
        f"δ = δ_max: the weighted mean and the best majority-dominant rule have errors of the "
        f"same order when A = Θ(ξ), the weighted mean without any condition on ρ; {guarantee}."
    )


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
