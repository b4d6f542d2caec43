"""UBAR: of the nearest neighbours those whose models do as well on the own data."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from bezoar._options import AtLeastOne, Share
from bezoar.aggregators._neighbourhood import TIE, Neighbourhood
from bezoar.aggregators._rule import WeightedAggregator, moved_towards

#: A share of a number of neighbours this close to a whole number is that number.
ROUNDING = 1e-9


@dataclass(frozen=True)
class UBAR(WeightedAggregator):
    """`UBAR <https://arxiv.org/abs/2002.08569>`_: first the nearest, of these the best.

    Of its ``N_w`` neighbours an agent looks at the ``⌊ρ N_w⌋`` nearest to its own message, at least
    at one. With ``T`` those of them whose loss on a fresh batch of the agent's own samples is at
    most that of the own message, the output is ``α y_w + (1 − α) mean_T``; where ``T`` is empty, it
    has the one of least loss. Messages that are not finite are left out, and where nothing else is
    left, or where the own message is not finite, that stays.

    Args:
        share: the share of the neighbours that are looked at, ``ρ``: as many as are regular.
        own: the weight of the own message, ``α``.
        samples: how many of its samples an agent draws in every iteration; all if it has fewer.
    """

    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    own: Share = 0.5
    samples: AtLeastOne = 32

    name: ClassVar[str] = "ubar"
    label: ClassVar[str] = "UBAR"
    colour: ClassVar[str] = "#762A83"
    marker: ClassVar[str] = "$u$"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = False

    def samples_judged(self) -> int:
        return self.samples

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        assert neighbourhood.losses is not None
        squared = neighbourhood.distances_to_own()
        squared[..., 0] = -1  # the own message comes before all others
        neighbours = (neighbourhood.size - 1).to(torch.float64)
        count = (self.share * neighbours + ROUNDING).floor().clamp_(min=1)
        ranks, finite = neighbourhood.ranks(squared), neighbourhood.finite
        near = (ranks >= 1) & (ranks <= count.unsqueeze(-1)) & neighbourhood.mask
        near &= finite & finite[..., :1]
        losses = neighbourhood.losses.nan_to_num(torch.inf, torch.inf, -torch.inf)
        limit = losses[..., :1] + TIE * losses[..., :1].abs()
        good = near & (losses <= limit)
        # What is infinitely bad still comes before what is not looked at.
        seen = losses.clamp(max=torch.finfo(losses.dtype).max / 2).masked_fill_(~near, torch.inf)
        best = neighbourhood.smallest(seen) & near
        chosen = torch.where(good.any(-1, keepdim=True), good, best).to(torch.float64)
        return moved_towards(chosen * (1 - self.own) / chosen.sum(-1, keepdim=True).clamp(min=1))
