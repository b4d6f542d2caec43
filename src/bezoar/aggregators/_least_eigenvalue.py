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

#: Power iterations for a bound of the largest eigenvalue, and how far that may be off by rounding.
POWERS, ROUNDING = 10, 1e-8


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
        at_a_time = max(1, TOGETHER // sets.shape[-2])
        rows = (
            squared.flatten(0, -3).split(at_a_time),
            sets.flatten(0, -3).split(at_a_time),
            possible.expand(sets.shape[:-1]).flatten(0, -2).split(at_a_time),
        )
        found = [_least_known(*some) for some in zip(*rows, strict=True)]
        return torch.cat(found).view(sets.shape[:-1])


def _least_known(squared: Tensor, sets: Tensor, possible: Tensor) -> Tensor:
    """``[n, s]`` the largest eigenvalue of every set that may have the least; elsewhere infinity.

    Bounds from below tell which sets are worth an eigenvalue problem.

    Args:
        squared: ``[n, m, m]`` squared distances.
        sets: ``[n, s, m]`` the members.
        possible: ``[n, s]`` which sets are allowed.
    """
    bounds = _from_below(squared, sets).masked_fill_(~possible, torch.inf)
    spread = torch.full_like(bounds, torch.inf)
    promising = torch.zeros_like(possible).scatter_(-1, bounds.argmin(-1, keepdim=True), True)
    for _ in range(2):
        row, column = (promising & possible).nonzero(as_tuple=True)
        spread[row, column] = _largest(squared[row], sets[row, column])
        least = spread.amin(-1, keepdim=True)
        promising = spread.isinf() & (bounds <= least * (1 + ROUNDING))
    return spread


def _from_below(squared: Tensor, sets: Tensor) -> Tensor:
    """``[n, s]`` what some power iterations find, which no largest eigenvalue is less than.

    Inner products about the mean are ``−P D P / 2`` of the squared distances ``D``, where ``P``
    takes away the mean over the members. They begin at the member farthest from the others.
    """
    share = sets / sets.sum(-1, keepdim=True).clamp(min=1)
    tiny = torch.finfo(squared.dtype).tiny
    scale = squared.amax((-2, -1), keepdim=True).clamp_(min=tiny)
    matrix = squared / (-2 * scale)

    def centred(vectors: Tensor) -> Tensor:
        return vectors.sub_((share * vectors).sum(-1, keepdim=True)).mul_(sets)

    far = ((sets @ squared) * sets).argmax(-1, keepdim=True)
    vector = centred(torch.zeros_like(sets).scatter_(-1, far, 1.0))
    for _ in range(POWERS):
        before, vector = vector, centred(vector @ matrix)
    length = before.square().sum(-1).clamp_(min=tiny)
    return (before * vector).sum(-1).div_(length) * scale.squeeze(-1)


def _largest(squared: Tensor, members: Tensor) -> Tensor:
    """``[...]`` the largest eigenvalue of the members' inner products about their mean."""
    products = about_mean(squared, members)
    products *= members.unsqueeze(-1) * members.unsqueeze(-2)
    values: Tensor = torch.linalg.eigvalsh(products)
    return values[..., -1]
