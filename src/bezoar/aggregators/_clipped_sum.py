"""Clipped sum: clipped gossip with a threshold that follows from the inputs."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._centered_clipping import clipping_factor
from bezoar.aggregators._clipped_gossip import ROUNDING
from bezoar.aggregators._neighbourhood import TIE, Neighbourhood
from bezoar.aggregators._rule import EstimatingAggregator, FinitePositive, moved_towards
from bezoar.networks import Mixing


@dataclass(frozen=True)
class ClippedSum(EstimatingAggregator):
    """`CS₊-RG <https://arxiv.org/abs/2410.10418>`_: ``y_w + η Σ_v E_wv clip(y_v − y_w, τ)``.

    With ``b_w`` the sum of the ``Q_w`` largest mixing weights of neighbours, ``τ`` is the largest
    distance of an input beyond which, strictly, there is a weight of at least ``2 b_w``; it is 0
    where there is none. With ``Q_w = 0`` nothing is clipped. Inputs that are not finite count as
    infinitely far and move nothing; an own message that is not finite stays.

    Args:
        rate: how far to go, ``η``.
        mixing: the mixing matrix, ``"metropolis"`` or ``"equal"``.
    """

    rate: FinitePositive = 1.0
    mixing: Mixing = "metropolis"

    name: ClassVar[str] = "clipped_sum"
    label: ClassVar[str] = "CS+"
    colour: ClassVar[str] = "#B2182B"
    marker: ClassVar[str] = "+"
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        squared = neighbourhood.distances_to_own()
        beyond = squared.unsqueeze(-2) > squared.unsqueeze(-1) * (1 + TIE)
        weight_beyond = (beyond * neighbourhood.mixing.unsqueeze(-2)).sum(-1)
        poisoned = neighbourhood.poisoned_weight()
        enough = (weight_beyond >= 2 * poisoned - ROUNDING) & neighbourhood.mask
        threshold = squared.masked_fill(~enough, 0).amax(-1, keepdim=True).sqrt_()
        threshold = threshold.masked_fill_(poisoned == 0, torch.inf)
        factor = clipping_factor(neighbourhood, squared.sqrt_(), threshold)
        return moved_towards(self.rate * neighbourhood.mixing * factor)
