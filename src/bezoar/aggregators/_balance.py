"""BALANCE: listen to who is near, and to fewer as training goes on."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._options import NonNegative, Positive, Share
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import WeightedAggregator, moved_towards


@dataclass(frozen=True)
class Balance(WeightedAggregator):
    """`BALANCE <https://arxiv.org/abs/2406.10416>`_: accept neighbours within a shrinking distance.

    A neighbour is accepted if ``‖y_v − y_w‖ ≤ γ e^(−κ k/K) ‖y_w‖`` in iteration ``k`` of ``K``. The
    output is ``α y_w + (1 − α)`` times the mean of the accepted; the own message if there are none.
    Messages that are not finite are never accepted; an own message that is not finite stays.

    Args:
        reach: ``γ``.
        decay: ``κ``.
        own: the weight of the own message, ``α``.
    """

    reach: Positive = 0.3
    decay: NonNegative = 1.0
    own: Share = 0.5

    name: ClassVar[str] = "balance"
    label: ClassVar[str] = "BALANCE"
    colour: ClassVar[str] = "#35978F"
    marker: ClassVar[str] = "x"
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False

    def remembers(self) -> tuple[str, ...]:
        return ("origin",)

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        squared = neighbourhood.distances_to_own()
        origin = neighbourhood.remembered["origin"]
        reach = self.reach * math.exp(-self.decay * neighbourhood.progress)
        near = squared <= reach * reach * squared[..., origin : origin + 1]
        usable = neighbourhood.mask & neighbourhood.finite & neighbourhood.finite[..., :1]
        accepted = (near & usable).to(torch.float64)
        accepted[..., 0] = 0
        count = accepted.sum(-1, keepdim=True)
        return moved_towards(accepted[..., :origin] * (1 - self.own) / count.clamp(min=1))
