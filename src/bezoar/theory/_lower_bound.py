"""Theorem 3: two instances that no majority-dominant rule can tell apart."""

from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bezoar import networks
from bezoar._errors import BezoarError
from bezoar.theory._checks import positive, whole
from bezoar.theory._contamination import contamination

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LowerBound:
    """The construction in the proof of Theorem 3: one network, two sets of labels.

    Agent ``w``'s cost is ``f(x; t) = s[x]_t + (L/2)‖x‖²`` on ``x ∈ R²``, with its label ``t`` and
    the slope ``s = (1−δ_max)c/√2``, ``c = min{ξ, A}``. Both instances satisfy Assumptions 1 to 4
    with ``ξ``, ``A`` and ``L``. Instances are numbered 0 and 1, labels 1 and 2 as in the paper.

    Attributes:
        network: the network.
        variant: ``"main"``, ``"dummies"`` or ``"all_to_all"``.
        labels: ``[2][W]`` every agent's label in either instance.
        switched: the regular agents with label 2 in the second instance.
        dummies: the poisoned agents with label 1 in both.
        delta_max: the local contamination rate.
        magnitude: ``c = min{ξ, A}``.
        smoothness: ``L``.
        constant: the guaranteed error as a share of ``δ_max²c²``.
        bound: ``constant·δ_max²c²``, which ``(1/K) Σ_{k=1}^K ‖∇f(x̄^k)‖²`` reaches in one of the
            instances, whatever the step sizes and the start.
        sharp_bound: twice that, which the argument gives when no factor is lost.
    """

    network: networks.Network
    variant: str
    labels: tuple[tuple[int, ...], tuple[int, ...]]
    switched: tuple[int, ...]
    dummies: tuple[int, ...]
    delta_max: float
    magnitude: float
    smoothness: float
    constant: float

    @property
    def slope(self) -> float:
        """``s = (1−δ_max)c/√2``."""
        return (1 - self.delta_max) * self.magnitude / sqrt(2)

    @property
    def bound(self) -> float:
        """The guaranteed mean squared gradient norm, ``constant·δ_max²c²``."""
        return self.constant * self.delta_max**2 * self.magnitude**2

    @property
    def sharp_bound(self) -> float:
        """``2·constant·δ_max²c²``, see :func:`lower_bound_instances`."""
        return 2 * self.bound

    def costs(self, instance: int, models: ArrayLike) -> Floats:
        """``[..., W]`` the agents' costs ``f̂_w`` at their models ``[..., W, 2]``."""
        x = np.asarray(models, dtype=np.float64)
        linear = (x * self._directions(instance)).sum(-1)
        costs: Floats = linear + 0.5 * self.smoothness * (x**2).sum(-1)
        return costs

    def gradients(self, instance: int, models: ArrayLike) -> Floats:
        """``[..., W, 2]`` the agents' gradients ``∇f̂_w`` at their models ``[..., W, 2]``."""
        x = np.asarray(models, dtype=np.float64)
        gradients: Floats = self._directions(instance) + self.smoothness * x
        return gradients

    def global_gradient(self, instance: int, model: ArrayLike) -> Floats:
        """``[..., 2]`` the gradient of the regular agents' cost ``f`` at a model ``[..., 2]``."""
        x = np.asarray(model, dtype=np.float64)
        return self._mean_direction(instance) + self.smoothness * x

    def infimum(self, instance: int) -> float:
        """``f*`` of the instance, reached at ``−∇f(0)/L``."""
        square = float((self._mean_direction(instance) ** 2).sum())
        return -square / (2 * self.smoothness)

    def _directions(self, instance: int) -> Floats:
        """``[W, 2]`` the constant part of every agent's gradient."""
        if instance not in (0, 1):
            raise BezoarError(f"instance: expected 0 or 1, found {instance!r}")
        directions: Floats = self.slope * np.eye(2)[np.asarray(self.labels[instance]) - 1]
        return directions

    def _mean_direction(self, instance: int) -> Floats:
        mean: Floats = self._directions(instance)[list(self.network.regular)].mean(axis=0)
        return mean


def lower_bound_instances(
    regular: int,
    poisoned: int,
    heterogeneity: float = 1.0,
    disturbance: float = 1.0,
    smoothness: float = 1.0,
) -> LowerBound:
    """The two instances of Theorem 3 for any numbers of agents that it covers.

    With ``m`` regular agents switching labels the two global gradients differ everywhere by
    ``g = √2·s·m/R = (1−δ_max)c·m/R``. The models ``x̄^k`` of both instances agree, and
    ``‖a‖² + ‖b‖² ≥ ½‖a−b‖²``, so one of the two means over ``k`` is at least ``g²/4``: that is
    ``sharp_bound``. The paper's chain of inequalities gives half of it, ``g²/8``: that is
    ``bound``. What remains is ``g`` in terms of ``δ_max``:

    - Main construction (``R ≥ 4``, four to ``R`` poisoned agents, ``R−1`` for odd ``R``): every
      regular agent has two poisoned neighbours, ``δ_max = 2/(R+2)``, ``m = 2``: ``g = δ_max·c``
      and the constant is 1/8.
    - ``D`` dummies on top: ``δ_max = (2+D)/(R+2+D)``, still ``m = 2``: ``g = 2c/(R+2+D) =
      δ_max·c·2/(2+D)`` and the constant is ``(2/(2+D))²/8``. It is not bounded below over all
      ``R`` and ``D``, so here the paper's order holds only for a bounded number of dummies.
    - All to all (fewer than four regular or poisoned agents): ``δ_max = P/(R+P)``, ``m = 1``:
      ``g = c/(R+P) = δ_max·c/P`` and the constant is ``1/(8P²)``, with at most three poisoned
      agents at least 1/72.

    Why the models agree. Say all regular agents hold ``z`` in both instances, and in the second
    all poisoned agents but dummies hold it too. A regular agent ``w`` hears ``R`` agents at the
    model ``y`` that label 1 leads to from ``z``, whatever the others are: in the first instance
    the regular ones; in the second those that did not switch and ``m`` poisoned ones with label
    1. Since ``R`` is the number of its regular inputs and a rule cannot know who is regular, a
    majority-dominant one returns ``y`` as long as ``R > P_w``. In the second instance a poisoned
    agent, dummies aside, hears at most one switched agent and at least two others at ``y``, its
    own model included, and returns ``y`` as well. A dummy hears both switched agents and may
    drift, as poisoned agents may in the first instance; no regular agent minds. IOS with
    Metropolis–Hastings weights keeps to this too: at regular agents all weights are equal, and at
    the poisoned ones of the second instance the switched agent's weight is below 1/2.

    Args:
        regular: ``R``, at least 2.
        poisoned: ``W − R``, at least 1 and so few that regular inputs are a majority at every
            regular agent: at most ``2R−3`` (even ``R ≥ 4``), ``2R−4`` (odd ``R ≥ 5``), 2 (``R =
            3``), 1 (``R = 2``).
        heterogeneity: ``ξ``.
        disturbance: ``A``.
        smoothness: ``L``.
    """
    R = whole("regular", regular, 2)
    whole("poisoned", poisoned, 1, _most_poisoned(R))
    magnitude = min(positive("heterogeneity", heterogeneity), positive("disturbance", disturbance))
    network = networks.create("lower_bound", regular=R, poisoned=poisoned)
    if R < 4 or poisoned < 4:
        switched: tuple[int, ...] = (0,)
        variant, dummies = "all_to_all", range(0)
        marked, constant = range(R, R + 1), 1 / (8 * poisoned**2)
    else:
        dealt = min(poisoned, R - R % 2)
        marked, dummies = range(R, R + dealt), range(R + dealt, R + poisoned)
        variant = "dummies" if dummies else "main"
        switched = _without_common_neighbour(network, set(marked))
        constant = (2 / (2 + len(dummies))) ** 2 / 8
    return LowerBound(
        network=network,
        variant=variant,
        labels=(_labels(network, marked), _labels(network, switched)),
        switched=tuple(switched),
        dummies=tuple(dummies),
        delta_max=contamination(network).delta_max,
        magnitude=magnitude,
        smoothness=positive("smoothness", smoothness),
        constant=constant,
    )


def _most_poisoned(regular: int) -> int:
    if regular < 4:
        return regular - 1
    return 2 * regular - 3 - regular % 2


def _without_common_neighbour(network: networks.Network, marked: set[int]) -> tuple[int, int]:
    """The first two regular agents that no agent of ``marked`` is linked to both of."""
    heard = {agent: marked & set(network.neighbours(agent)) for agent in network.regular}
    return next(
        pair for pair in combinations(network.regular, 2) if not heard[pair[0]] & heard[pair[1]]
    )


def _labels(network: networks.Network, second: range | tuple[int, ...]) -> tuple[int, ...]:
    return tuple(2 if agent in second else 1 for agent in range(network.agents))
