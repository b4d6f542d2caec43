"""Least variance: the inputs that vary least about their mean."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bezoar.aggregators._least_subset import LeastSubset


@dataclass(frozen=True)
class LeastVariance(LeastSubset):
    """`MVA <https://arxiv.org/abs/2205.12173>`_: the inputs of least variance.

    The mean of ``N̄_w − Q_w`` inputs is returned, of those whose mean squared distance to their mean
    is least. With more than 12 inputs only one set for each input is tried, the inputs nearest to
    it. Of ties the set with the lowest agents is taken. Inputs that are not finite are dropped
    first; the output is NaN only where more of them come in than are dropped.
    """

    name: ClassVar[str] = "least_variance"
    label: ClassVar[str] = "MVA"
    colour: ClassVar[str] = "#2166AC"
    marker: ClassVar[str] = "1"

    def spread(self, squared: Tensor, members: Tensor, possible: Tensor) -> Tensor:
        # Of sets of one size that is the one whose squared distances have the least sum.
        sums: Tensor = ((members @ squared) * members).sum(-1)
        return sums
