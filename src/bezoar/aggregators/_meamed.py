"""MeaMed: the mean around the median, coordinate by coordinate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._rule import CoordinateAggregator, Estimating

#: Distances to the median are equal if they differ by no more than this share of the largest value,
#: some roundings of float64.
ROUNDING = 2**-50


@dataclass(frozen=True)
class MeaMed(Estimating, CoordinateAggregator):
    """`MeaMed <https://arxiv.org/abs/1802.10116>`_: the mean around the median, by coordinates.

    In every coordinate the mean of the ``N̄_w − Q_w`` values closest to the median is returned. Of
    an even number the median is the mean of the middle two. Where values on either side of the
    median are equally close, but for rounding, and not all of them are kept, the mean of keeping
    the lower ones and of keeping the higher ones is returned. NaN counts as plus infinity; the
    output is not finite only where more such values come in than are dropped.
    """

    name: ClassVar[str] = "meamed"
    label: ClassVar[str] = "MeaMed"
    colour: ClassVar[str] = "#BC80BD"
    marker: ClassVar[str] = "."
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True

    def combine(
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: int
    ) -> Tensor:
        return mean_around_median(values, len(values) - estimate, dtype)

    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        return extent_around_median(values, len(values) - estimate)


def mean_around_median(ordered: Sequence[Tensor], kept: int, dtype: torch.dtype) -> Tensor:
    """The mean of as many sorted values as are ``kept``, those closest to the median.

    They are neighbours in the order. So the lowest ones are taken first, then one is exchanged for
    the next higher as long as that is closer. Of ties the lower or the higher are taken, and the
    mean of both ways is returned.
    """
    wide = [value.to(dtype) for value in ordered]
    lower = higher = _sum(wide[:kept])
    for start, (farther, as_far) in enumerate(_exchanges(wide, kept)):
        total = _sum(wide[start + 1 : start + 1 + kept])
        lower = torch.where(farther, total, lower)
        higher = torch.where(as_far, total, higher)
    return (lower + higher).div_(2 * kept)


def extent_around_median(ordered: Sequence[Tensor], kept: int) -> tuple[Tensor, Tensor]:
    """The lowest and the highest of the sorted values that are kept, on ties in either way."""
    lowest, highest = ordered[0], ordered[kept - 1]
    for start, (farther, as_far) in enumerate(_exchanges(ordered, kept)):
        lowest = torch.where(farther, ordered[start + 1], lowest)
        highest = torch.where(as_far, ordered[start + kept], highest)
    return lowest, highest


def _exchanges(ordered: Sequence[Tensor], kept: int) -> Sequence[tuple[Tensor, Tensor]]:
    """Two flags for each of the lowest values, compared with the value that would take its place.

    They say whether it is farther from the median, and whether it is at least as far. With the
    middle values ``a ≤ b`` and the median ``(a + b)/2``, a value ``u`` below is farther from it
    than ``v`` above if ``a − u > v − b``. What is infinite is infinitely far, even from a median
    that is.
    """
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    size = torch.maximum(ordered[0].abs(), ordered[-1].abs()).nan_to_num_(0, 0, 0)
    slack = size.mul_(ROUNDING)
    found = []
    for low, high in zip(ordered, ordered[kept:], strict=False):
        down, up = (
            apart.nan_to_num_(torch.inf, torch.inf, -torch.inf)
            for apart in (below - low, high - above)
        )
        found.append((down > up + slack, down >= up - slack))
    return found


def _sum(values: Sequence[Tensor]) -> Tensor:
    total = values[0].clone()
    for value in values[1:]:
        total += value
    return total
