"""Clipped gossip: the weighted mean that takes only so much from anyone."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from bezoar._options import Positive
from bezoar.aggregators._centered_clipping import THRESHOLD, clipping_factor
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import Estimate, WeightedAggregator, moved_towards
from bezoar.networks import Mixing

#: Sums of mixing weights this close are equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class ClippedGossip(WeightedAggregator):
    """`Clipped gossip <https://arxiv.org/abs/2202.01545>`_: ``y_w + Σ_v E_wv clip(y_v − y_w, τ)``.

    Messages that are not finite are treated as in centered clipping.

    Args:
        threshold: the clipping threshold ``τ``; or ``"adaptive"``: then it follows from the inputs,
            ``τ² = (1/b_w) Σ_{v∈S} E_wv ‖y_v − y_w‖²``, where ``b_w`` is the sum of the ``Q_w``
            largest mixing weights of neighbours, and ``S`` has the inputs nearest to the own
            message, of a weight of at most ``1 − b_w`` in all. With ``Q_w = 0`` nothing is clipped.
        mixing: the mixing matrix, ``"metropolis"`` or ``"equal"``.
        estimate: for an adaptive threshold the number of poisoned inputs ``Q_w``: ``"exact"``,
            ``"max"``, a number for all, or such a number as ``"up_to_2"``, lower where the rule
            cannot bear so many.
    """

    threshold: Positive | Literal["adaptive"] = THRESHOLD
    mixing: Mixing = "metropolis"
    estimate: Estimate = "exact"

    name: ClassVar[str] = "clipped_gossip"
    label: ClassVar[str] = "CG"
    colour: ClassVar[str] = "#E69F00"
    marker: ClassVar[str] = "v"
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False

    def uses_estimate(self) -> bool:
        return self.threshold == "adaptive"

    def inputs_needed(self, estimate: Any) -> Any:
        return estimate + 1 if self.uses_estimate() else super().inputs_needed(estimate)

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        squared = neighbourhood.distances_to_own()
        threshold: float | Tensor
        if self.threshold == "adaptive":
            threshold = _adaptive_threshold(neighbourhood, squared)
        else:
            threshold = self.threshold
        moved = neighbourhood.mixing * clipping_factor(neighbourhood, squared.sqrt_(), threshold)
        return moved_towards(moved)


def _adaptive_threshold(neighbourhood: Neighbourhood, squared: Tensor) -> Tensor:
    """``[..., 1]`` the threshold of each agent."""
    poisoned = neighbourhood.poisoned_weight()
    nearest_first = neighbourhood.ranks(squared).argsort(-1)
    weights = neighbourhood.mixing.expand(squared.shape).gather(-1, nearest_first)
    near = weights.cumsum(-1) <= 1 - poisoned + ROUNDING
    # What is not finite has no part in it, however few inputs are taken for poisoned.
    distances = squared.gather(-1, nearest_first).nan_to_num_(posinf=0)
    total = (weights * distances * near).sum(-1, keepdim=True)
    return (total / poisoned).sqrt_().masked_fill_(poisoned == 0, torch.inf)
