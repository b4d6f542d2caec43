"""The median, coordinate by coordinate."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._coordinate_rule import RankAggregator
from bezoar.aggregators._neighbourhood import normalised


@dataclass(frozen=True)
class Median(RankAggregator):
    """The median, coordinate by coordinate; of an even number the mean of the middle two.

    NaN counts as plus infinity; the output is finite while fewer than half of the values are not.
    """

    name: ClassVar[str] = "median"
    label: ClassVar[str] = "Median"
    colour: ClassVar[str] = "#332288"
    marker: ClassVar[str] = "h"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True

    def rank_weights(self, size: int, estimate: Tensor) -> Tensor:
        rank = torch.arange(size, device=estimate.device).expand(*estimate.shape, size)
        middle = (rank >= (size - 1) // 2) & (rank <= size // 2)
        return normalised(middle.to(torch.float64))
