"""IOS: FABA with means weighted by the mixing matrix."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from bezoar.aggregators._faba import drop_farthest
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import Estimate, WeightedAggregator
from bezoar.networks import Mixing


@dataclass(frozen=True)
class IOS(WeightedAggregator):
    """`IOS <https://arxiv.org/abs/2308.05292>`_: FABA with means weighted by the mixing matrix.

    The weights of the mixing matrix are renormalised over the inputs left. Inputs that are not
    finite are treated as in FABA.

    Args:
        mixing: the mixing matrix, ``"metropolis"`` or ``"equal"``.
        estimate: the number of poisoned inputs ``Q_w``: ``"exact"``, ``"max"``, a number for all,
            or such a number as ``"up_to_2"``, lower where the rule cannot bear so many.
        keep_own: never drop the own model, as in the original; the variant studied here may.
    """

    mixing: Mixing = "metropolis"
    estimate: Estimate = "exact"
    keep_own: bool = False

    name: ClassVar[str] = "ios"
    label: ClassVar[str] = "IOS"
    colour: ClassVar[str] = "#56B4E9"
    marker: ClassVar[str] = "P"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True

    def inputs_needed(self, estimate: Any) -> Any:
        return estimate + 1

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return drop_farthest(neighbourhood, neighbourhood.mixing, self.keep_own)
