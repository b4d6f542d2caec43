"""FABA and IOS: drop what lies farthest from the mean, again and again."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._registry import choose
from bezoar.aggregators._base import WeightedAggregator, refuse_small_neighbourhoods
from bezoar.aggregators._neighbourhood import Neighbourhood, normalised
from bezoar.aggregators._seats import Estimate, check_estimate, estimates
from bezoar.networks import MIXINGS, Network


@dataclass(frozen=True)
class FABA(WeightedAggregator):
    """`FABA <https://www.ijcai.org/proceedings/2019/670>`_: outliers dropped one by one.

    ``Q_w`` times, the input farthest from the mean of those left is dropped; the mean of the rest
    is returned. The own model may be dropped. Inputs that are not finite count as infinitely far
    and go first; the output is NaN only where more of them come in than are dropped.

    Args:
        estimate: the number of poisoned inputs ``Q_w``: ``"true"``, ``"max"`` or a number for all.
    """

    estimate: Estimate = "true"

    name: ClassVar[str] = "faba"
    label: ClassVar[str] = "FABA"

    def __post_init__(self) -> None:
        check_estimate(self.estimate)

    def wiring(self) -> tuple[str, Estimate]:
        return "metropolis", self.estimate

    def check(self, network: Network) -> None:
        _check_something_left(self, network)

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return drop_farthest(neighbourhood, neighbourhood.mask.to(torch.float64))


@dataclass(frozen=True)
class IOS(WeightedAggregator):
    """`IOS <https://arxiv.org/abs/2308.05292>`_: FABA with means weighted by the mixing matrix.

    The weights of the mixing matrix are renormalised over the inputs left. Inputs that are not
    finite are treated as in FABA.

    Args:
        mixing: the mixing matrix, ``"metropolis"`` or ``"equal"``.
        estimate: the number of poisoned inputs ``Q_w``: ``"true"``, ``"max"`` or a number for all.
        keep_own: never drop the own model, as in the original; the variant studied here may.
    """

    mixing: str = "metropolis"
    estimate: Estimate = "true"
    keep_own: bool = False

    name: ClassVar[str] = "ios"
    label: ClassVar[str] = "IOS"

    def __post_init__(self) -> None:
        choose("mixing", self.mixing, MIXINGS)
        check_estimate(self.estimate)

    def wiring(self) -> tuple[str, Estimate]:
        return self.mixing, self.estimate

    def check(self, network: Network) -> None:
        _check_something_left(self, network)

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return drop_farthest(neighbourhood, neighbourhood.mixing, self.keep_own)


def drop_farthest(neighbourhood: Neighbourhood, prior: Tensor, keep_own: bool = False) -> Tensor:
    """``[..., m]`` the prior weights over what is left after dropping the farthest inputs."""
    kept = neighbourhood.mask.expand_as(neighbourhood.finite)
    for dropped in range(neighbourhood.largest_estimate):
        counted = prior * (kept & neighbourhood.finite)
        mean = counted / counted.sum(-1, keepdim=True).clamp(min=torch.finfo(prior.dtype).tiny)
        distances = neighbourhood.squared_distances_to(mean)
        distances = distances.masked_fill_(~neighbourhood.finite, torch.inf)
        distances = distances.masked_fill_(~kept, -1)
        if keep_own:
            distances[..., 0] = -1
        goes = (neighbourhood.estimate > dropped).unsqueeze(-1)
        kept = kept & ~(neighbourhood.largest(distances) & goes)
    return normalised(prior * kept)


def _check_something_left(rule: WeightedAggregator, network: Network) -> None:
    needed = estimates(network, rule.wiring()[1]) + 1
    refuse_small_neighbourhoods(rule, network, needed, "must keep at least one")
