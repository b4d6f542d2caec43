"""Contamination rates, and the errors that they lead to (before Theorem 2 and Table I; Table II).

>>> from bezoar import networks, theory
>>> theory.contamination(networks.fan(agents=10))
Contamination(delta=0.1, delta_max=0.3333333333333333, agent=0)
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from bezoar.networks import Network, check_network
from bezoar.theory._theorems import finite


@dataclass(frozen=True)
class Contamination:
    """How much of a network is poisoned.

    Attributes:
        delta: the global rate ``δ = 1 − R/W``, before Theorem 2.
        delta_max: the local rate ``δ_max = max_{w regular} (1 − R̄_w/N̄_w)``, before Table I.
        agent: the lowest regular agent at which the local rate is reached.
    """

    delta: float
    delta_max: float
    agent: int


def contamination(network: Network) -> Contamination:
    """The global and the local contamination rate; an agent's own model is one of its inputs."""
    network = check_network(network)
    regular = np.asarray(network.regular)
    rates = network.poisoned_inputs[regular] / (network.degrees[regular] + 1)
    worst = int(rates.argmax())
    delta = len(network.poisoned) / network.agents
    return Contamination(delta, float(rates[worst]), int(regular[worst]))


@dataclass(frozen=True)
class LearningErrorOrder:
    """A row of Table II: an order, without constants.

    Attributes:
        aggregator: ``"RAgg"``, the best majority-dominant rule, or ``"WeiMean"``.
        order: the formula.
        value: its value. Only ratios of such values have a meaning. It is infinite for RAgg where
            ``δ_max ≥ 1/2``: no majority is left that a rule could follow.
    """

    aggregator: str
    order: str
    value: float


def learning_error_orders(
    rates: Contamination, heterogeneity: float = 1.0
) -> tuple[LearningErrorOrder, LearningErrorOrder]:
    """Table II: the orders of the learning error when ``A = Θ(ξ)``, with the heterogeneity ``ξ``.

    Returns:
        The row of the best majority-dominant rule, and that of the weighted mean. The weighted
        mean has the smaller order where ``δ < δ_max``.
    """
    square = finite("heterogeneity", heterogeneity) ** 2
    majority = rates.delta_max**2 * square if rates.delta_max < 0.5 else inf
    return (
        LearningErrorOrder("RAgg", "Θ(δ_max² ξ²)", majority),
        LearningErrorOrder("WeiMean", "Θ(δ² ξ²)", rates.delta**2 * square),
    )
