"""RFA: the geometric median."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.aggregators._base import WeightedAggregator
from bezoar.aggregators._neighbourhood import Neighbourhood, normalised


@dataclass(frozen=True)
class RFA(WeightedAggregator):
    """`RFA <https://arxiv.org/abs/1912.13445>`_: the geometric median of the inputs.

    Weiszfeld's iteration: weights ``1 / max(ν, ‖y_v − s‖)``, normalised, until they settle. The
    smoothing ``ν`` starts at the size of the neighbourhood and falls to a small share of it, so
    that an iterate which happens to meet an input is not held there. Inputs that are not finite
    are left out; with nothing finite the output is NaN.

    Args:
        smoothing: the final ``ν`` as a share of the typical distance between inputs.
        tolerance: the iteration stops when no weight moves by more than this.
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
        weights = normalised(usable.to(torch.float64))
        spread = neighbourhood.squared_distances_to(weights).masked_fill_(~usable, 0)
        scale = (spread.sum(-1, keepdim=True) / usable.sum(-1, keepdim=True)).sqrt_()
        floor = torch.finfo(torch.float64).tiny
        for step in range(self.iterations):
            smoothing = scale * max(self.smoothing, 0.5**step)
            distances = neighbourhood.squared_distances_to(weights).sqrt_()
            nearer = usable / torch.maximum(distances, smoothing).clamp_(min=floor)
            new = normalised(nearer)
            settled = step % 8 == 7 and bool(((new - weights).abs() <= self.tolerance).all())
            weights = new
            if settled and 0.5**step <= self.smoothing:
                break
        return weights
