"""Total variation: a step of fixed size towards every neighbour, coordinate by coordinate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._coordinate_rule import CoordinateAggregator
from bezoar.aggregators._rule import FinitePositive

#: Values that differ by this many roundings are equal: the sign of their difference means nothing.
#: In half precision everything is rounded so much that differences do mean something.
ROUNDING = 64


@dataclass(frozen=True)
class TotalVariation(CoordinateAggregator):
    """`TV penalty <https://arxiv.org/abs/2005.06276>`_: ``y_w − (s/√k) Σ_v sign(y_w − y_v)``.

    In iteration ``k`` every neighbour moves every coordinate of the own message by ``s/√k`` towards
    its own value, however far that is; nobody is dropped. The authors penalise ``λ Σ ‖x_w − x_v‖₁``
    in the cost, so that the signs are those of the models before the local update and ``s/√k`` is
    the step size times ``λ``. An agent of Algorithm 1 does not hear its neighbours' models before
    their updates, so here the signs are those of the messages, and zero where values are equal but
    for rounding. NaN counts as plus infinity; an own value that is not finite stays.

    Args:
        strength: how far a neighbour moves a coordinate in the first iteration, ``s``.
    """

    strength: FinitePositive = 1e-3

    name: ClassVar[str] = "total_variation"
    label: ClassVar[str] = "TV"
    colour: ClassVar[str] = "#BF812D"
    marker: ClassVar[str] = ","
    sorts: ClassVar[bool] = False
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False

    def combine(
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: Tensor
    ) -> Tensor:
        own, *others = values
        kind = torch.finfo(own.dtype)
        rounding = 1 + ROUNDING * min(kind.eps, torch.finfo(torch.float32).eps)
        # What lies between these is equal to the own value. They are finite: an infinite value is
        # not equal to the largest number.
        bounds = [
            torch.clamp(each, kind.min, kind.max) for each in (own * rounding, own / rounding)
        ]
        low, high = torch.minimum(*bounds), torch.maximum(*bounds)
        pulls = torch.zeros_like(own, dtype=dtype)
        for value in others:
            pulls = pulls + (value > high).to(dtype) - (value < low).to(dtype)
        step = self.strength / torch.sqrt(torch.clamp(iteration, min=1))
        return own + pulls * step.to(dtype)

    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        everything = torch.full_like(values[0], torch.inf)
        return -everything, everything
