"""Trimmed sum: the weighted mean without the farthest weight."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._clipped_gossip import ROUNDING
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import EstimatingAggregator, FinitePositive, moved_towards
from bezoar.networks import Mixing


@dataclass(frozen=True)
class TrimmedSum(EstimatingAggregator):
    """`GTS-RG <https://arxiv.org/abs/2410.10418>`_: ``y_w + η Σ_v E_wv κ_v (y_v − y_w)``.

    With ``b_w`` the sum of the ``Q_w`` largest mixing weights of neighbours, the inputs farthest
    from the own message lose a weight of ``b_w`` in all: those get ``κ = 0``, and the one at the
    boundary keeps the rest of its weight. Inputs that are not finite count as infinitely far and
    move nothing; an own message that is not finite stays.

    Args:
        rate: how far to go, ``η``.
        mixing: the mixing matrix, ``"metropolis"`` or ``"equal"``.
    """

    rate: FinitePositive = 1.0
    mixing: Mixing = "metropolis"

    name: ClassVar[str] = "trimmed_sum"
    label: ClassVar[str] = "GTS"
    colour: ClassVar[str] = "#7B3294"
    marker: ClassVar[str] = "H"
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        ranks = neighbourhood.ranks(neighbourhood.distances_to_own())
        farthest_first = ranks.argsort(-1, descending=True)
        mixing = neighbourhood.mixing.expand(ranks.shape)
        in_order = mixing.gather(-1, farthest_first)
        kept = in_order.cumsum(-1).sub_(neighbourhood.poisoned_weight()).clamp_(min=0)
        kept = torch.minimum(kept, in_order)
        kept = kept.masked_fill_(kept < ROUNDING, 0)
        moved = torch.zeros_like(mixing).scatter_(-1, farthest_first, kept)
        usable = neighbourhood.finite & neighbourhood.finite[..., :1]
        return moved_towards(self.rate * moved.masked_fill_(~usable, 0))
