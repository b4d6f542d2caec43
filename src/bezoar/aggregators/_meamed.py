"""MeaMed: the mean around the median, coordinate by coordinate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._coordinate_rule import CoordinateAggregator
from bezoar.aggregators._rule import Estimating

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
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: Tensor
    ) -> Tensor:
        return mean_around_median(values, len(values) - estimate, dtype)

    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        return extent_around_median(values, len(values) - estimate)


def mean_around_median(ordered: Sequence[Tensor], kept: int, dtype: torch.dtype) -> Tensor:
    """The mean of as many sorted values as are ``kept``, those closest to the median.

    They follow each other in the order. So of the values that are ``kept`` ranks apart exactly one
    has a part, the closest; where two are equally close, their mean has.
    """
    wide = [value.to(dtype) for value in ordered]
    middle = _Middle.of(wide)
    total = torch.zeros_like(wide[0])
    for first in range(kept):
        closest = wide[first]
        for other in wide[first + kept :: kept]:
            closest = middle.closest(closest, other)
        total = total + closest
    return total / kept


def extent_around_median(ordered: Sequence[Tensor], kept: int) -> tuple[Tensor, Tensor]:
    """The lowest and the highest of the sorted values that are kept, on ties in either way."""
    middle = _Middle.of(ordered)
    lowest, highest = ordered[0], ordered[kept - 1]
    for start, (low, high) in enumerate(zip(ordered, ordered[kept:], strict=False)):
        low_is_closer, high_is_closer = middle.closer(low, high)
        lowest = torch.where(high_is_closer, ordered[start + 1], lowest)
        highest = torch.where(low_is_closer, highest, high)
    return lowest, highest


@dataclass(frozen=True)
class _Middle:
    """The median of sorted values, which is the mean of the two in the middle.

    Attributes:
        below: the lower of the two.
        above: the higher; of an odd number of values, the same.
        slack: by how much equal distances may differ.
    """

    below: Tensor
    above: Tensor
    slack: Tensor | float

    @classmethod
    def of(cls, ordered: Sequence[Tensor]) -> "_Middle":
        """That of some values."""
        below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        if below.dtype != torch.float64:  # its own roundings are larger
            return cls(below, above, 0.0)
        size = torch.maximum(torch.abs(ordered[0]), torch.abs(ordered[-1]))
        return cls(below, above, torch.where(size < torch.inf, size, 0.0) * ROUNDING)

    def closer(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Whether the lower one of two sorted values is closer, and whether the higher one is.

        With the middle values ``a ≤ b`` and the median ``(a + b)/2``, a value ``u`` below is
        farther from it than ``v`` above if ``a − u > v − b``. What is infinite is infinitely far,
        even from a median that is.
        """
        down, up = (
            torch.where(apart < torch.inf, apart, torch.inf)  # not NaN
            for apart in (self.below - low, high - self.above)
        )
        return down < up - self.slack, down > up + self.slack

    def closest(self, low: Tensor, high: Tensor) -> Tensor:
        """The closer of two sorted values; where both are, their mean."""
        low_is_closer, high_is_closer = self.closer(low, high)
        return torch.where(low_is_closer, low, torch.where(high_is_closer, high, (low + high) / 2))
