"""RFA: the geometric median."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.aggregators._base import WeightedAggregator
from bezoar.aggregators._neighbourhood import Neighbourhood, normalised

#: Distances below this share of the inputs' distance to the reference cannot be told from zero.
ROUNDING = 1e-7


@dataclass(frozen=True)
class RFA(WeightedAggregator):
    """`RFA <https://arxiv.org/abs/1912.13445>`_: the geometric median of the inputs.

    Weiszfeld's iteration: weights ``1 / max(ν, ‖y_v − s‖)``, normalised, until they settle. The
    smoothing ``ν`` starts at the reach of all inputs and falls to a small share of the reach of
    half of them, so that an iterate which happens to meet an input is not held there, and so that
    no minority can raise it. Inputs that are not finite are left out; with nothing finite the
    output is NaN.

    Args:
        smoothing: the final ``ν`` as a share of how far the nearest half of the inputs reaches.
        tolerance: the iteration stops when it moves by no more than this, as a share of the
            distance to the nearest input.
        iterations: and at the latest after so many steps.
    """

    smoothing: float = 1e-6
    tolerance: float = 1e-9
    iterations: int = 1000

    name: ClassVar[str] = "rfa"
    label: ClassVar[str] = "RFA"

    def __post_init__(self) -> None:
        for field in ("smoothing", "tolerance"):
            found = getattr(self, field)
            if not isinstance(found, int | float) or not found > 0:
                raise BezoarError(f"{field}: expected a positive number, found {found!r}")
        if not isinstance(self.iterations, int) or self.iterations < 1:
            raise BezoarError(
                f"iterations: expected an integer of at least 1, found {self.iterations!r}"
            )

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        usable = neighbourhood.finite | (
            neighbourhood.mask & ~neighbourhood.finite.any(-1, keepdim=True)
        )
        reach = _reach_of_half(neighbourhood, usable)
        weights = normalised(usable.to(torch.float64))
        final = self.smoothing * reach.amin(-1, keepdim=True)
        distances = neighbourhood.squared_distances_to(weights).sqrt_()
        coarse = distances.masked_fill_(~usable, 0).amax(-1, keepdim=True)
        agreed = _agreed(neighbourhood, reach)
        certain = agreed.any(-1, keepdim=True)
        for step in range(self.iterations):
            coarse = torch.maximum(coarse / 4, final)
            distances = neighbourhood.squared_distances_to(weights).sqrt_()
            held = torch.maximum(distances, coarse).masked_fill_(~usable, torch.inf)
            nearest = held.amin(-1, keepdim=True)
            new = normalised(torch.where(held <= nearest, 1.0, nearest / held) * usable)
            if step % 8 == 7:
                moved = neighbourhood.length(new - weights)
                settled = (moved <= self.tolerance * nearest) & (coarse <= final)
                if bool((settled | certain).all()):
                    break
            weights = new
        return torch.where(certain, normalised(agreed.to(torch.float64)), new)


def _reach_of_half(neighbourhood: Neighbourhood, usable: Tensor) -> Tensor:
    """``[..., m]`` how far from each input one must go to meet more than half of all."""
    both = usable.unsqueeze(-1) & usable.unsqueeze(-2)
    distances = neighbourhood.squared_distances().masked_fill_(~both, torch.inf)
    ordered = distances.sort(-1).values
    half = (usable.sum(-1, keepdim=True) // 2).unsqueeze(-1).expand(*usable.shape, 1)
    return ordered.gather(-1, half).squeeze(-1).masked_fill_(~usable, torch.inf).sqrt_()


def _agreed(neighbourhood: Neighbourhood, reach: Tensor) -> Tensor:
    """``[..., m]`` the inputs that more than half of all are equal to, but for rounding.

    Then the median is theirs, and the iteration towards it would take long.
    """
    assert neighbourhood.gram is not None
    size = neighbourhood.gram.diagonal(dim1=-2, dim2=-1).sqrt()
    return reach <= ROUNDING * size
