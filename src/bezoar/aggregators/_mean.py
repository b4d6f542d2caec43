"""The plain mean."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import WeightedAggregator


@dataclass(frozen=True)
class Mean(WeightedAggregator):
    """The plain mean over the neighbourhood, own model included.

    A message that is not finite spreads to every neighbour: nothing is dropped.
    """

    name: ClassVar[str] = "mean"
    label: ClassVar[str] = "Mean"
    colour: ClassVar[str] = "#7F4A1E"
    marker: ClassVar[str] = ">"
    withstands: ClassVar[tuple[str, ...]] = ("labels",)
    breakdown: ClassVar[float] = 0.0
    majority_dominant: ClassVar[bool] = False
    reads: ClassVar[str] = "nothing"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return neighbourhood.mask / neighbourhood.size.unsqueeze(-1).to(torch.float64)
