"""Divide and conquer: drop what lies far out in the direction in which the inputs vary most."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood, normalised
from bezoar.aggregators._rule import EstimatingAggregator, FinitePositive
from bezoar.aggregators._spectrum import widest_direction

#: A number of inputs to drop this close to a whole number is that number.
ROUNDING = 1e-9


@dataclass(frozen=True)
class DivideAndConquer(EstimatingAggregator):
    """`DnC <https://doi.org/10.14722/ndss.2021.24498>`_: outliers dropped in one direction.

    The ``⌊c Q_w⌋`` inputs are dropped that are farthest from the mean in the direction in which the
    inputs vary most, the top singular vector of the centred inputs; the mean of the rest is
    returned. The original draws some of the coordinates at random; here all are used. Inputs that
    are not finite are dropped first; the output is NaN only where more of them come in than are
    dropped.

    Args:
        factor: how many inputs are dropped for one that is poisoned, ``c``.
    """

    factor: FinitePositive = 1.0

    name: ClassVar[str] = "divide_and_conquer"
    label: ClassVar[str] = "DnC"
    colour: ClassVar[str] = "#8C510A"
    marker: ClassVar[str] = "4"
    withstands: ClassVar[tuple[str, ...]] = ("labels", "non_finite")
    breakdown: ClassVar[float] = 0.0
    majority_dominant: ClassVar[bool] = False

    def inputs_needed(self, estimate: Any) -> Any:
        return self._dropped(estimate) + 1

    def _dropped(self, estimate: Any) -> Any:
        return (self.factor * estimate + ROUNDING) // 1

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        finite = neighbourhood.finite & neighbourhood.mask
        some = finite | ~finite.any(-1, keepdim=True)  # with nothing finite there is no direction
        _, away = widest_direction(neighbourhood.squared_distances(), some.to(torch.float64))
        ranks = neighbourhood.ranks(away.masked_fill_(~finite, torch.inf))
        dropped = self._dropped(neighbourhood.estimate.to(torch.float64))
        kept = ranks < (neighbourhood.size - dropped).unsqueeze(-1)
        return normalised(kept.to(torch.float64))
