"""What the theory says of one network, gathered in a document.

>>> from bezoar import networks, theory
>>> found = theory.overview(networks.two_castle())
>>> found["delta"], round(found["delta_max"], 4), found["connectivity"]["uniform"]["components"]
(0.1, 0.1111, 1)
"""

from collections.abc import Collection
from dataclasses import asdict
from math import inf
from typing import Any

from bezoar.networks import Network, check_network
from bezoar.theory._connectivity import KINDS, connectivity, mixing_gap
from bezoar.theory._contamination import contamination, learning_error_orders
from bezoar.theory._contraction import contraction_orders
from bezoar.theory._placement import worst_connectivity, worst_contamination

#: Matrix entries to look at in search of the worst placement: a second or two.
EFFORT = 4_000_000


def overview(
    network: Network, mixing: str = "metropolis", rules: Collection[str] = (), effort: int = EFFORT
) -> dict[str, Any]:
    """What the theory says of a network: rates, conditions, orders, and a verdict in a sentence.

    Args:
        network: who hears whom, and who is poisoned.
        mixing: the mixing matrix, ``metropolis`` or ``equal``.
        rules: the rows of Table I wanted, by name; by default all.
        effort: as for :func:`worst_connectivity`.

    Returns:
        ``delta``, ``delta_max``, ``connectivity`` of both kinds (``λ``, ``β``, Theorem 1),
        ``weighted_mean`` (``λ'``, Theorem 2), ``table_1``, ``table_2``, ``worst_placement``,
        ``verdict``, and the network's own numbers.
    """
    network = check_network(network)
    rates = contamination(network)
    connected = {kind: connectivity(network, kind, mixing) for kind in KINDS}
    # What Theorem 1 leaves for ρ: nothing where λ ≥ 1.
    room = {kind: max(0.0, (1 - found.lam) / 4) for kind, found in connected.items()}
    gap = mixing_gap(network, mixing)
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
                "room_for_rho": room[kind],
            }
            for kind, found in connected.items()
        },
        "weighted_mean": {
            "lambda_prime": gap,
            "lambda_prime_below_one": gap < 1,
            "iterations_over_smoothness_squared": (
                max(24 * (gap / (1 - gap)) ** 2, 1.0) if gap < 1 else inf
            ),
        },
        "table_1": [
            asdict(row) | {"room": room[row.matrix]}
            for row in contraction_orders(rates.delta_max)
            if not rules or row.aggregator in rules
        ],
        "table_2": [asdict(row) for row in learning_error_orders(rates)],
        "worst_placement": [],
    }
    # If nobody is poisoned, tell of the worst place for one agent.
    if count := min(max(1, len(network.poisoned)), network.agents - 1):
        kinds = (worst_connectivity(network, count, kind, mixing, effort) for kind in KINDS)
        now = (rates.delta_max, *(found.lam for found in connected.values()))
        report["worst_placement"] = [
            {**asdict(worst), "gap": worst.gap, "now": value, "agents": count}
            for worst, value in zip((worst_contamination(network, count), *kinds), now, strict=True)
        ]
    return report | {"verdict": _verdict(report, network.names[rates.agent])}


def _verdict(report: dict[str, Any], worst: str) -> str:
    """In one sentence, the weighted mean against robust rules; ``worst`` is the agent of δ_max."""
    delta, delta_max = report["delta"], report["delta_max"]
    if not report["poisoned"]:
        return (
            "Nobody is poisoned, so there is nothing to guard against: the weighted mean's error "
            "vanishes as K grows, on any connected network."
        )
    connected = report["connectivity"].values()
    if any(found["lambda_below_one"] for found in connected):
        room = max(found["room_for_rho"] for found in connected)
        guarantee = f"robust rules are covered only while their ρ stays below {room:.3g}"
    else:
        pieces = max(found["components"] for found in connected)
        reason = f"the regular agents fall into {pieces} pieces" if pieces > 1 else "λ ≥ 1"
        guarantee = f"robust rules have no guarantee here ({reason})"
    if delta_max >= 0.5:
        return (
            f"Of the inputs of agent {worst} {delta_max:.0%} are poisoned, so no rule that follows "
            f"the majority has a bounded error; the weighted mean has one, of order δ²ξ² "
            f"where A = Θ(ξ), with δ = {delta:.3g}."
        )
    if delta_max > delta * (1 + 1e-12):
        return (
            f"With very different local data (A = Θ(ξ)) the weighted mean has the smaller error, "
            f"of order δ²ξ² against δ_max²ξ², {(delta_max / delta) ** 2:.3g} times less than the "
            f"best majority-dominant rule, and {guarantee}."
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
