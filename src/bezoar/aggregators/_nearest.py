"""Nearest neighbours: the mean of the inputs nearest to the own model."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood, normalised
from bezoar.aggregators._rule import EstimatingAggregator, one_hot


@dataclass(frozen=True)
class Nearest(EstimatingAggregator):
    """`NNA <https://arxiv.org/abs/2209.10931>`_: the mean of the nearest neighbours.

    The mean of the ``N̄_w − Q_w`` inputs nearest to the own message, itself included, is returned.
    Inputs that are not finite count as infinitely far; the output is NaN only where more of them
    come in than are dropped, or where the own message is not finite.
    """

    name: ClassVar[str] = "nearest"
    label: ClassVar[str] = "NNA"
    colour: ClassVar[str] = "#1B7F79"
    marker: ClassVar[str] = "*"
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        ranks = neighbourhood.ranks(neighbourhood.distances_to_own())
        kept = ranks < (neighbourhood.size - neighbourhood.estimate).unsqueeze(-1)
        own = one_hot(neighbourhood.finite, 0)
        return torch.where(neighbourhood.finite[..., :1], normalised(kept.to(torch.float64)), own)
