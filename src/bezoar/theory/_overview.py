"""Everything that the theory says of one network, gathered in a document."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from math import inf
from typing import Any

from bezoar.networks import Network
from bezoar.theory._contamination import contamination, learning_error_orders
from bezoar.theory._contraction import contraction_orders
from bezoar.theory._mixing_gap import mixing_gap
from bezoar.theory._placement import worst_connectivity, worst_contamination
from bezoar.theory._virtual import KINDS, connectivity

#: Matrix entries to look at in search of the worst placement: a second or two.
EFFORT = 4_000_000


def overview(
    network: Network,
    mixing: str = "metropolis",
    rules: Collection[str] = (),
    effort: int = EFFORT,
) -> dict[str, Any]:
    """What the theory says of a network: rates, conditions, orders, and a verdict in a sentence.

    Args:
        network: the network.
        mixing: the mixing matrix, ``metropolis`` or ``equal``.
        rules: the rows of Table I wanted, by name; by default all.
        effort: as for :func:`worst_connectivity`.

    Returns:
        ``delta``, ``delta_max``, ``connectivity`` of both kinds (``λ``, ``β``, Theorem 1),
        ``weighted_mean`` (``λ'``, Theorem 2), ``table_1``, ``table_2``, ``worst_placement``,
        ``verdict``, and the network's own numbers.
    """
    rates = contamination(network)
    connected = {kind: connectivity(network, kind, mixing) for kind in KINDS}
    gap = mixing_gap(network, mixing)
    now = [rates.delta_max, *(connected[kind].lam for kind in KINDS)]
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
        "table_1": [
            asdict(row) | {"room": _room(connected[row.matrix].lam)}
            for row in contraction_orders(rates.delta_max)
            if not rules or row.aggregator in rules
        ],
        "table_2": [asdict(row) for row in learning_error_orders(rates)],
        "worst_placement": _worst(network, mixing, effort, now),
    }
    return report | {"verdict": _verdict(report)}


def _worst(
    network: Network, mixing: str, effort: int, now: Sequence[float]
) -> list[dict[str, Any]]:
    """The worst placements of as many poisoned agents as there are, or of one, beside ``now``."""
    count = min(max(1, len(network.poisoned)), network.agents - 1)
    if not count:
        return []
    worst = [
        worst_contamination(network, count),
        *(worst_connectivity(network, count, kind, mixing, effort) for kind in KINDS),
    ]
    return [
        {**asdict(found), "gap": found.gap, "now": value, "agents": count}
        for found, value in zip(worst, now, strict=True)
    ]


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
