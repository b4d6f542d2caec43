"""Least diameter: the inputs of which no two are far apart."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._least_subset import LeastSubset


@dataclass(frozen=True)
class LeastDiameter(LeastSubset):
    """`MDA <https://arxiv.org/abs/2008.00742>`_: the mean of the inputs of least diameter.

    Of all sets of ``N̄_w − Q_w`` inputs the one is taken whose largest distance between two members
    is least. With more than 12 inputs only one set for each input is tried, the inputs nearest to
    it. Of ties the set with the lowest agents is taken. Inputs that are not finite are dropped
    first; the output is NaN only where more of them come in than are dropped.
    """

    name: ClassVar[str] = "least_diameter"
    label: ClassVar[str] = "MDA"
    colour: ClassVar[str] = "#5E4FA2"
    marker: ClassVar[str] = "8"

    def spread(self, squared: Tensor, members: Tensor, possible: Tensor) -> Tensor:
        diameter = torch.zeros_like(members[..., 0])
        for place in range(squared.shape[-1]):
            reach = (members * squared[..., None, place, :]).amax(-1)
            diameter = torch.maximum(diameter, reach * members[..., place])
        return diameter
