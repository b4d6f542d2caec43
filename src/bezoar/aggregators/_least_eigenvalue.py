"""Least eigenvalue: the inputs that vary least in the direction in which they vary most."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._least_subset import LeastSubset
from bezoar.aggregators._rule import THREATS
from bezoar.aggregators._spectrum import about_mean

#: Sets whose covariance matrices are looked at together.
TOGETHER = 32


@dataclass(frozen=True)
class LeastEigenvalue(LeastSubset):
    """`SMEA <https://arxiv.org/abs/2302.04787>`_: the inputs of least maximal eigenvalue.

    The mean of ``N̄_w − Q_w`` inputs is returned, of those whose covariance matrix has the smallest
    largest eigenvalue. With more than 12 inputs only one set for each input is tried, the inputs
    nearest to it. Of ties the set with the lowest agents is taken. Inputs that are not finite are
    dropped first; the output is NaN only where more of them come in than are dropped.
    """

    name: ClassVar[str] = "least_eigenvalue"
    label: ClassVar[str] = "SMEA"
    colour: ClassVar[str] = "#4D9221"
    marker: ClassVar[str] = "2"
    withstands: ClassVar[tuple[str, ...]] = tuple(THREATS)
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True

    def spread(self, squared: Tensor, members: Tensor) -> Tensor:
        found = []
        for some in members.split(TOGETHER, dim=-2):
            products = about_mean(squared.unsqueeze(-3), some)
            products *= some.unsqueeze(-1) * some.unsqueeze(-2)
            found.append(torch.linalg.eigvalsh(products)[..., -1])
        return torch.cat(found, dim=-1)
