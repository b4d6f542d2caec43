"""Least eigenvalue: the inputs that vary least in the direction in which they vary most."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._questions import answered_at_once
from bezoar.aggregators._least_subset import LeastSubset
from bezoar.aggregators._spectrum import about_mean

#: Sets whose covariance matrices are looked at together.
TOGETHER = 4096


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

    def spread(self, squared: Tensor, members: Tensor, possible: Tensor) -> Tensor:
        if not answered_at_once():
            at_a_time = max(1, TOGETHER // squared[..., 0, 0].numel())
            parts = members.split(at_a_time, dim=-2)
            return torch.cat([_largest(squared.unsqueeze(-3), some) for some in parts], dim=-1)
        sets = members.expand(*squared.shape[:-2], *members.shape[-2:])
        batch, which = possible.expand(sets.shape[:-1]).flatten(0, -2).nonzero(as_tuple=True)
        found = squared.new_full((len(batch),), 0.0)
        matrices, chosen = squared.flatten(0, -3), sets.flatten(0, -3)[batch, which]
        for first in range(0, len(batch), TOGETHER):
            some = slice(first, first + TOGETHER)
            found[some] = _largest(matrices[batch[some]], chosen[some])
        spread = squared.new_full((len(matrices), sets.shape[-2]), torch.inf)
        spread[batch, which] = found
        return spread.view(sets.shape[:-1])


def _largest(squared: Tensor, members: Tensor) -> Tensor:
    """``[...]`` the largest eigenvalue of the members' inner products about their mean."""
    products = about_mean(squared, members)
    products *= members.unsqueeze(-1) * members.unsqueeze(-2)
    values: Tensor = torch.linalg.eigvalsh(products)
    return values[..., -1]
