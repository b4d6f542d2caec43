"""Rules that work coordinate by coordinate: trimmed mean and median."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._base import CoordinateAggregator, refuse_small_neighbourhoods
from bezoar.aggregators._neighbourhood import normalised
from bezoar.aggregators._seats import Estimate, check_estimate, estimates
from bezoar.networks import Network


@dataclass(frozen=True)
class TrimmedMean(CoordinateAggregator):
    """`Trimmed mean <https://arxiv.org/abs/1803.01498>`_, coordinate by coordinate.

    The ``Q_w`` largest and the ``Q_w`` smallest values are dropped, the mean of the rest is
    returned. NaN counts as plus infinity; the output is infinite only where more infinite values
    come in than are dropped.

    Args:
        estimate: the number of poisoned inputs ``Q_w``: ``"true"``, ``"max"`` or a number for all.
    """

    estimate: Estimate = "true"

    name: ClassVar[str] = "trimmed_mean"
    label: ClassVar[str] = "TriMean"

    def __post_init__(self) -> None:
        check_estimate(self.estimate)

    def wiring(self) -> tuple[str, Estimate]:
        return "metropolis", self.estimate

    def check(self, network: Network) -> None:
        needed = 2 * estimates(network, self.estimate) + 1
        refuse_small_neighbourhoods(
            self, network, needed, "drops as many again on the other side and must keep one"
        )

    def rank_weights(self, size: Tensor, estimate: Tensor, slots: int) -> Tensor:
        rank = torch.arange(slots, device=size.device)
        size, estimate = size.unsqueeze(-1), estimate.unsqueeze(-1)
        return normalised(((rank >= estimate) & (rank < size - estimate)).to(torch.float64))

    def outermost(self, largest_estimate: int) -> int:
        return largest_estimate


@dataclass(frozen=True)
class Median(CoordinateAggregator):
    """The median, coordinate by coordinate; of an even number the mean of the middle two.

    NaN counts as plus infinity; the output is finite while fewer than half of the values are not.
    """

    name: ClassVar[str] = "median"
    label: ClassVar[str] = "Median"

    def rank_weights(self, size: Tensor, estimate: Tensor, slots: int) -> Tensor:
        rank = torch.arange(slots, device=size.device)
        size = size.unsqueeze(-1)
        middle = (rank >= (size - 1) // 2) & (rank <= size // 2)
        return normalised(middle.to(torch.float64))
