"""Krum: the input nearest to its neighbours."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import Estimate, WeightedAggregator


@dataclass(frozen=True)
class Krum(WeightedAggregator):
    """`Krum <https://arxiv.org/abs/1703.02757>`_: the input nearest to its neighbours.

    An input's score is the sum of its squared distances to the ``N̄_w − Q_w − 2`` inputs nearest
    to it, at least to one; the input with the lowest score is returned. Inputs that are not
    finite are never returned unless there is nothing else.

    Args:
        estimate: the number of poisoned inputs ``Q_w``: ``"exact"``, ``"max"``, a number for all,
            or such a number as ``"up_to_2"``, lower where the rule cannot bear so many.
    """

    estimate: Estimate = "exact"

    name: ClassVar[str] = "krum"
    label: ClassVar[str] = "Krum"
    colour: ClassVar[str] = "#117733"
    marker: ClassVar[str] = "p"

    def inputs_needed(self, estimate: Any) -> Any:
        return estimate + 1

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        finite = neighbourhood.finite
        distances = neighbourhood.squared_distances()
        present = finite.unsqueeze(-1) & finite.unsqueeze(-2)
        distances = distances.masked_fill_(~present, torch.inf)
        distances.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
        nearest = distances.sort(-1).values
        counted = (neighbourhood.size - neighbourhood.estimate - 2).clamp(min=1)[..., None, None]
        rank = torch.arange(nearest.shape[-1], device=nearest.device)
        scores = nearest.masked_fill_(rank >= counted, 0).sum(-1)
        # A finite input whose neighbours are not finite still comes before one that is not.
        scores = scores.clamp_(max=torch.finfo(scores.dtype).max / 2).masked_fill_(
            ~finite, torch.inf
        )
        best = neighbourhood.smallest(scores) & neighbourhood.mask
        return best.to(torch.float64)
