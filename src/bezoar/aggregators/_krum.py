"""Krum: the input nearest to its neighbours, or several of them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bezoar._options import AtLeastOne
from bezoar.aggregators._neighbourhood import Neighbourhood, normalised
from bezoar.aggregators._rule import EstimatingAggregator


@dataclass(frozen=True)
class Krum(EstimatingAggregator):
    """`Krum <https://arxiv.org/abs/1703.02757>`_: the input nearest to its neighbours.

    An input's score is the sum of its squared distances to the ``N̄_w − Q_w − 2`` inputs nearest
    to it, at least to one; the input with the lowest score is returned, or with Multi-Krum the
    mean of several. Inputs that are not finite are never returned unless there is nothing else.

    Args:
        keep: the mean of this many inputs with the lowest scores is returned, at most of
            ``N̄_w − Q_w``; ``"most"`` means just these.
    """

    keep: AtLeastOne | Literal["most"] = 1

    name: ClassVar[str] = "krum"
    label: ClassVar[str] = "Krum"
    colour: ClassVar[str] = "#117733"
    marker: ClassVar[str] = "p"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = False  # it needs three inputs more than a majority

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        finite = neighbourhood.finite
        nearest = neighbourhood.finite_distances().sort(-1).values
        counted = (neighbourhood.size - neighbourhood.estimate - 2).clamp(min=1)[..., None, None]
        rank = torch.arange(nearest.shape[-1], device=nearest.device)
        scores = nearest.masked_fill_(rank >= counted, 0).sum(-1)
        # A finite input whose neighbours are not finite still comes before one that is not.
        scores = scores.clamp_(max=torch.finfo(scores.dtype).max / 2).masked_fill_(
            ~finite, torch.inf
        )
        most = (neighbourhood.size - neighbourhood.estimate).unsqueeze(-1)
        most = torch.minimum(most, finite.sum(-1, keepdim=True)).clamp_(min=1)
        kept = most if self.keep == "most" else most.clamp(max=min(self.keep, finite.shape[-1]))
        return normalised((neighbourhood.ranks(scores) < kept).to(torch.float64))
