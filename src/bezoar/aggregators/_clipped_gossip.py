"""Clipped gossip: the weighted mean that takes only so much from anyone."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bezoar._options import Positive
from bezoar.aggregators._centered_clipping import THRESHOLD, clipping_factor
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import WeightedAggregator, one_hot
from bezoar.networks import Mixing


@dataclass(frozen=True)
class ClippedGossip(WeightedAggregator):
    """`Clipped gossip <https://arxiv.org/abs/2202.01545>`_: ``y_w + Σ_v E_wv clip(y_v − y_w, τ)``.

    Messages that are not finite are treated as in centered clipping.

    Args:
        threshold: the clipping threshold ``τ``.
        mixing: the mixing matrix, ``"metropolis"`` or ``"equal"``.
    """

    threshold: Positive = THRESHOLD
    mixing: Mixing = "metropolis"

    name: ClassVar[str] = "clipped_gossip"
    label: ClassVar[str] = "CG"
    colour: ClassVar[str] = "#E69F00"
    marker: ClassVar[str] = "v"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        own = one_hot(neighbourhood.finite, 0)
        distances = neighbourhood.squared_distances_to(own).sqrt_()
        moved = neighbourhood.mixing * clipping_factor(neighbourhood, distances, self.threshold)
        return own * (1 - moved.sum(-1, keepdim=True)) + moved
