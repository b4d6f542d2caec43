"""Contamination rates and what they promise (sections "Main Results" and "Lower Bounds")."""

from dataclasses import dataclass

import numpy as np

from bezoar.networks import Network


@dataclass(frozen=True)
class Contamination:
    """How much of a network is poisoned.

    Attributes:
        delta: the global rate ``δ = 1 − R/W``, before Theorem 2.
        delta_max: the local rate ``δ_max = max_{w regular} (1 − R̄_w/N̄_w)``, before Table I.
        agent: a regular agent, the lowest, at which the local rate is reached.
    """

    delta: float
    delta_max: float
    agent: int


def contamination(network: Network) -> Contamination:
    """The global and the local contamination rate of ``network``.

    ``δ`` is defined before Theorem 2, ``δ_max`` before Table I. Agents' own models count among
    their inputs.
    """
    regular = np.asarray(network.regular)
    rates = network.poisoned_inputs[regular] / (network.degrees[regular] + 1)
    worst = int(rates.argmax())
    return Contamination(
        delta=len(network.poisoned) / network.agents,
        delta_max=float(rates[worst]),
        agent=int(regular[worst]),
    )


@dataclass(frozen=True)
class LearningErrorOrder:
    """A row of Table II: an order, without constants.

    Attributes:
        aggregator: ``"RAgg"``, the best majority-dominant rule, or ``"WeiMean"``.
        order: the formula.
        value: the formula's value with ``ξ`` inserted. Only ratios of these mean anything.
    """

    aggregator: str
    order: str
    value: float


def learning_error_orders(
    rates: Contamination, heterogeneity: float = 1.0
) -> tuple[LearningErrorOrder, LearningErrorOrder]:
    """Table II: the orders of the learning error when ``A = Θ(ξ)``.

    Args:
        rates: the contamination rates.
        heterogeneity: ``ξ``.

    Returns:
        The row of the best majority-dominant rule and that of the weighted mean. The weighted
        mean has the smaller order where ``δ < δ_max``.
    """
    square = heterogeneity**2
    return (
        LearningErrorOrder("RAgg", "Θ(δ_max² ξ²)", rates.delta_max**2 * square),
        LearningErrorOrder("WeiMean", "Θ(δ² ξ²)", rates.delta**2 * square),
    )
