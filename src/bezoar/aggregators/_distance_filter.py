"""Distance filter: drop what lies far from a robust point."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._neighbourhood import TIE, Neighbourhood, normalised
from bezoar.aggregators._rule import Aggregator, EstimatingAggregator
from bezoar.aggregators._trimmed_mean import TrimmedMean


@dataclass(frozen=True)
class DistanceFilter(EstimatingAggregator):
    """`Distance filter <https://arxiv.org/abs/2305.10810>`_: drop what is far from a robust point.

    With the auxiliary point ``z_w``, the trimmed mean of the inputs, the ``Q_w`` inputs farthest
    from ``z_w`` are dropped, as far as they are farther from it than the own message; the mean of
    the rest is returned. In the authors' algorithms agents also keep auxiliary points and send
    them; here the point is made of the messages in every iteration anew, so nothing else is sent.
    Inputs that are not finite count as infinitely far; the output is NaN only where more of them
    come in than are dropped, or where the own message is not finite.
    """

    name: ClassVar[str] = "distance_filter"
    label: ClassVar[str] = "SDFD"
    colour: ClassVar[str] = "#01665E"
    marker: ClassVar[str] = "|"
    keeps: ClassVar[str] = TrimmedMean.keeps
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = False
    reads: ClassVar[str] = "distances"

    def inputs_needed(self, estimate: Any) -> Any:
        return 2 * estimate + 1

    def auxiliary(self) -> Aggregator:
        return TrimmedMean(self.estimate)

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        assert neighbourhood.distances is not None
        squared = neighbourhood.distances.masked_fill(~neighbourhood.finite, torch.inf)
        last = (neighbourhood.size - neighbourhood.estimate).unsqueeze(-1)
        farther = squared > squared[..., :1] * (1 + TIE)
        dropped = (neighbourhood.ranks(squared) >= last) & farther
        return normalised((neighbourhood.mask & ~dropped).to(torch.float64))
