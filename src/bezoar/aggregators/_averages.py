"""Averages that trust everyone, and the rule that trusts no one."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._registry import choose
from bezoar.aggregators._base import WeightedAggregator
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._seats import Estimate
from bezoar.networks import MIXINGS


@dataclass(frozen=True)
class WeightedMean(WeightedAggregator):
    """The weighted mean over the neighbourhood, ``Σ_v E_wv y_v``.

    A message that is not finite spreads to every neighbour: nothing is dropped.

    Args:
        mixing: the doubly stochastic mixing matrix, ``"metropolis"`` or ``"equal"``.
    """

    mixing: str = "metropolis"

    name: ClassVar[str] = "weighted_mean"
    label: ClassVar[str] = "WeiMean"
    reads: ClassVar[str] = "nothing"

    def __post_init__(self) -> None:
        choose("mixing", self.mixing, MIXINGS)

    def wiring(self) -> tuple[str, Estimate]:
        return self.mixing, "true"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return neighbourhood.mixing


@dataclass(frozen=True)
class Mean(WeightedAggregator):
    """The plain mean over the neighbourhood, own model included.

    A message that is not finite spreads to every neighbour: nothing is dropped.
    """

    name: ClassVar[str] = "mean"
    label: ClassVar[str] = "Mean"
    reads: ClassVar[str] = "nothing"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return neighbourhood.mask / neighbourhood.size.unsqueeze(-1).to(torch.float64)


@dataclass(frozen=True)
class Local(WeightedAggregator):
    """No communication: every agent keeps its own model, whatever it hears."""

    name: ClassVar[str] = "local"
    label: ClassVar[str] = "Local"
    reads: ClassVar[str] = "nothing"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        own = torch.zeros_like(neighbourhood.mixing)
        own[..., 0] = 1
        return own
