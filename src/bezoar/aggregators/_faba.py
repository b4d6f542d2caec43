"""FABA: drop what lies farthest from the mean, again and again."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood, normalised
from bezoar.aggregators._rule import EstimatingAggregator


@dataclass(frozen=True)
class FABA(EstimatingAggregator):
    """`FABA <https://www.ijcai.org/proceedings/2019/670>`_: outliers dropped one by one.

    ``Q_w`` times, the input farthest from the mean of those left is dropped; the mean of the rest
    is returned. Inputs that are not finite count as infinitely far and go first; the output is NaN
    only where more of them come in than are dropped.

    Args:
        keep_own: never drop the own model, as in the code of the paper's authors.
    """

    keep_own: bool = False

    name: ClassVar[str] = "faba"
    label: ClassVar[str] = "FABA"
    colour: ClassVar[str] = "#009E73"
    marker: ClassVar[str] = "^"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        return drop_farthest(neighbourhood, neighbourhood.mask.to(torch.float64), self.keep_own)


def drop_farthest(neighbourhood: Neighbourhood, prior: Tensor, keep_own: bool) -> Tensor:
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
