"""Theorem 3: two instances that no majority-dominant rule can tell apart.

>>> from bezoar import theory
>>> instances = theory.lower_bound_instances(regular=4, poisoned=4)
>>> instances.labels
((1, 1, 1, 1, 2, 2, 2, 2), (2, 1, 2, 1, 1, 1, 1, 1))
>>> round(instances.bound, 6)
0.013889
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from bezoar import networks
from bezoar._arrays import Floats
from bezoar._checks import positive, whole
from bezoar._errors import BezoarError
from bezoar.theory._contamination import contamination
from bezoar.theory._theorems import finite


@dataclass(frozen=True)
class LowerBound:
    """The construction in the proof of Theorem 3: one network, two sets of labels.

    The costs are in docs/theory.md. Both instances satisfy Assumptions 1 to 4 with ``ξ``, ``A`` and
    ``L``. Instances are numbered 0 and 1, labels 1 and 2 as in the paper.

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
    def bound(self) -> float:
        """``constant·δ_max²c²``: in one of the instances ``(1/K) Σ_{k=1}^K ‖∇f(x̄^k)‖²`` is no less.

        This holds for all step sizes and starts.
        """
        return self.constant * self.delta_max**2 * self.magnitude**2

    @property
    def sharp_bound(self) -> float:
        """``2·constant·δ_max²c²``, what the argument gives without the paper's loss of a factor."""
        return 2 * self.bound

    def costs(self, instance: int, models: ArrayLike) -> Floats:
        """``[..., W]`` the agents' costs ``f̂_w`` at their models ``[..., W, 2]``."""
        x = np.asarray(models, dtype=np.float64)
        costs: Floats = (x * (self._directions(instance) + 0.5 * self.smoothness * x)).sum(-1)
        return costs

    def gradients(self, instance: int, models: ArrayLike) -> Floats:
        """``[..., W, 2]`` the agents' gradients ``∇f̂_w`` at their models ``[..., W, 2]``."""
        x = np.asarray(models, dtype=np.float64)
        return self._directions(instance) + self.smoothness * x

    def global_gradient(self, instance: int, model: ArrayLike) -> Floats:
        """``[..., 2]`` the gradient of the regular agents' cost ``f`` at a model ``[..., 2]``."""
        mean: Floats = self._directions(instance)[list(self.network.regular)].mean(axis=0)
        return mean + self.smoothness * np.asarray(model, dtype=np.float64)

    def infimum(self, instance: int) -> float:
        """``f*`` of the instance, reached at ``−∇f(0)/L``."""
        square = (self.global_gradient(instance, np.zeros(2)) ** 2).sum()
        return -float(square) / (2 * self.smoothness)

    def _directions(self, instance: int) -> Floats:
        """``[W, 2]`` the constant part of every agent's gradient."""
        if instance not in (0, 1):
            raise BezoarError(f"instance: expected 0 or 1, found {instance!r}")
        slope = (1 - self.delta_max) * self.magnitude / sqrt(2)
        directions: Floats = slope * np.eye(2)[np.asarray(self.labels[instance]) - 1]
        return directions


def lower_bound_instances(
    regular: int,
    poisoned: int,
    heterogeneity: float = 1.0,
    disturbance: float = 1.0,
    smoothness: float = 1.0,
) -> LowerBound:
    """The two instances of Theorem 3 for any numbers of agents that it covers.

    Why no rule tells them apart, and what the constant is in each variant, is in docs/theory.md.

    Args:
        regular: ``R``, at least 2.
        poisoned: ``W − R``, at least 1 and so few that regular inputs are a majority at every
            regular agent: at most ``2R−3`` (even ``R ≥ 4``), ``2R−4`` (odd ``R ≥ 5``), 2 (``R =
            3``), 1 (``R = 2``).
        heterogeneity, disturbance, smoothness: ``ξ``, ``A`` and ``L``.
    """
    R = whole("regular", regular, 2)
    whole("poisoned", poisoned, 1, R - 1 if R < 4 else 2 * R - 3 - R % 2)
    given = {"heterogeneity": heterogeneity, "disturbance": disturbance, "smoothness": smoothness}
    xi, A, L = (finite(field, positive(field, found)) for field, found in given.items())
    network = networks.create("lower_bound", regular=R, poisoned=poisoned)
    switched: tuple[int, ...]
    if R < 4 or poisoned < 4:
        variant, marked, dummies = "all_to_all", range(R, R + 1), range(0)
        switched, constant = (0,), 1 / (8 * poisoned**2)
    else:
        layered = min(poisoned, R - R % 2)
        marked, dummies = range(R, R + layered), range(R + layered, R + poisoned)
        variant = "dummies" if dummies else "main"
        heard = [set(network.neighbours(agent)) & set(marked) for agent in range(R)]
        switched = next((a, b) for a, b in combinations(range(R), 2) if not heard[a] & heard[b])
        constant = (2 / (2 + len(dummies))) ** 2 / 8
    return LowerBound(
        network=network,
        variant=variant,
        labels=(_labels(network, marked), _labels(network, switched)),
        switched=switched,
        dummies=tuple(dummies),
        delta_max=contamination(network).delta_max,
        magnitude=min(xi, A),
        smoothness=L,
        constant=constant,
    )


def _labels(network: networks.Network, second: Collection[int]) -> tuple[int, ...]:
    return tuple(2 if agent in second else 1 for agent in range(network.agents))
