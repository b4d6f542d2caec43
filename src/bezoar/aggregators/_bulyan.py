"""Bulyan: the inputs that Krum picks one by one, then their mean around the median."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._coordinate_rule import CoordinateAggregator
from bezoar.aggregators._meamed import extent_around_median, mean_around_median
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import Estimating


@dataclass(frozen=True)
class Bulyan(Estimating, CoordinateAggregator):
    """`Bulyan <https://arxiv.org/abs/1802.07927>`_: Krum again and again, then by coordinates.

    Krum picks an input, which is taken out, then one of those left, until ``θ = N̄_w − 2 Q_w`` are
    picked. Among the ``n`` inputs left, a score is the sum of the squared distances to the
    ``n − Q_w − 2`` nearest, at least to one. In every coordinate the mean of the ``θ − 2 Q_w``
    picked values closest to their median is returned, with ties as in MeaMed. The authors ask for
    ``N̄_w ≥ 4 Q_w + 3``; two inputs less can be computed. Inputs that are not finite are picked last
    and count as in MeaMed.
    """

    name: ClassVar[str] = "bulyan"
    label: ClassVar[str] = "Bulyan"
    colour: ClassVar[str] = "#4575B4"
    marker: ClassVar[str] = "_"
    breakdown: ClassVar[float] = 1 / 4
    majority_dominant: ClassVar[bool] = True
    reads: ClassVar[str] = "gram"
    keeps: ClassVar[str] = "drops four for each of them and must keep one"

    def inputs_needed(self, estimate: Any) -> Any:
        return 4 * estimate + 1

    def values_used(self, inputs: int, estimate: int) -> int:
        return inputs - 2 * estimate

    def choose(self, neighbourhood: Neighbourhood) -> Tensor:
        finite = neighbourhood.finite
        nearest, order = neighbourhood.finite_distances().sort(-1)
        left = neighbourhood.mask.expand(finite.shape)
        size, estimate = neighbourhood.size, neighbourhood.estimate
        wanted = (size - 2 * estimate).unsqueeze(-1)
        largest = torch.finfo(nearest.dtype).max / 8
        for picked in range(left.shape[-1]):
            here = left.unsqueeze(-2).expand_as(nearest).gather(-1, order)
            counted = (size - picked - estimate - 2).clamp(min=1)[..., None, None]
            here = here & (here.cumsum(-1) <= counted)
            scores = nearest.masked_fill(~here, 0).sum(-1).clamp_(max=largest)
            scores = scores.masked_fill_(~finite, 2 * largest).masked_fill_(~left, torch.inf)
            left = left & ~(neighbourhood.smallest(scores) & (picked < wanted))
        return neighbourhood.mask & ~left

    def combine(
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: Tensor
    ) -> Tensor:
        return mean_around_median(values, len(values) - 2 * estimate, dtype)

    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        return extent_around_median(values, len(values) - 2 * estimate)
