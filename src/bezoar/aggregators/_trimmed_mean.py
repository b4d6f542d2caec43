"""The trimmed mean, coordinate by coordinate."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._coordinate_rule import RankAggregator
from bezoar.aggregators._neighbourhood import normalised
from bezoar.aggregators._rule import Estimating


@dataclass(frozen=True)
class TrimmedMean(Estimating, RankAggregator):
    """`Trimmed mean <https://arxiv.org/abs/1803.01498>`_, coordinate by coordinate.

    The ``Q_w`` largest and the ``Q_w`` smallest values are dropped, the mean of the rest is
    returned. NaN counts as plus infinity; the output is infinite only where more infinite values
    come in than are dropped, or where an infinite one is kept as the own.

    Args:
        keep_own: drop values of the neighbours alone and always keep the own one, as in the code of
            the paper's authors.
    """

    keep_own: bool = False

    name: ClassVar[str] = "trimmed_mean"
    label: ClassVar[str] = "TriMean"
    colour: ClassVar[str] = "#0072B2"
    marker: ClassVar[str] = "s"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True
    keeps: ClassVar[str] = "drops as many again on the other side and must keep one"

    def inputs_needed(self, estimate: Any) -> Any:
        return 2 * estimate + 1

    def rank_weights(self, size: int, estimate: Tensor) -> Tensor:
        rank, dropped = torch.arange(size, device=estimate.device), estimate.unsqueeze(-1)
        kept = (rank >= dropped + self.keep_own) & (rank < size - dropped)
        if self.keep_own:
            kept |= rank == 0
        return normalised(kept.to(torch.float64))

    def outermost(self, largest_estimate: int) -> int:
        return largest_estimate
