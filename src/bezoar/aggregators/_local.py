"""No communication."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import WeightedAggregator, one_hot


@dataclass(frozen=True)
class Local(WeightedAggregator):
    """No communication: every agent keeps its own model, whatever it hears."""

    name: ClassVar[str] = "local"
    label: ClassVar[str] = "Local"
    colour: ClassVar[str] = "#777777"
    marker: ClassVar[str] = "d"
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False
    reads: ClassVar[str] = "nothing"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return one_hot(neighbourhood.mixing, 0)
