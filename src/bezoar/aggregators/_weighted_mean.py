"""The weighted mean: trusts every neighbour as much as the mixing matrix says."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import WeightedAggregator
from bezoar.networks import Mixing


@dataclass(frozen=True)
class WeightedMean(WeightedAggregator):
    """The weighted mean over the neighbourhood, ``Σ_v E_wv y_v``.

    A message that is not finite spreads to every neighbour: nothing is dropped.

    Args:
        mixing: the doubly stochastic mixing matrix, ``"metropolis"`` or ``"equal"``.
    """

    mixing: Mixing = "metropolis"

    name: ClassVar[str] = "weighted_mean"
    label: ClassVar[str] = "WeiMean"
    colour: ClassVar[str] = "#D55E00"
    marker: ClassVar[str] = "o"
    withstands: ClassVar[tuple[str, ...]] = ("labels",)
    breakdown: ClassVar[float] = 0.0
    majority_dominant: ClassVar[bool] = False
    reads: ClassVar[str] = "nothing"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return neighbourhood.mixing
