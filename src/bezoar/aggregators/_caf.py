"""CAF: take weight from what lies far out, direction by direction."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from bezoar._questions import answered_at_once
from bezoar.aggregators._neighbourhood import Neighbourhood, normalised
from bezoar.aggregators._rule import EstimatingAggregator
from bezoar.aggregators._spectrum import widest_direction

#: Weights below this are zero.
ROUNDING = 1e-12


@dataclass(frozen=True)
class CAF(EstimatingAggregator):
    """`CAF <https://arxiv.org/abs/2505.01874>`_, the covariance-agnostic filter.

    All inputs begin with weight ``c_i = 1``. While ``Σ c > N̄_w − 2 Q_w``, the direction is found in
    which the weighted inputs vary most, and with ``τ_i`` the squared distance to their mean in that
    direction, ``c_i ← c_i (1 − τ_i / max τ)``. Of all means on the way the one is returned about
    which the inputs varied least in their widest direction. Inputs that are not finite begin with
    weight zero; with nothing finite the output is NaN.
    """

    name: ClassVar[str] = "caf"
    label: ClassVar[str] = "CAF"
    colour: ClassVar[str] = "#C51B7D"
    marker: ClassVar[str] = "3"
    breakdown: ClassVar[float] = 1 / 2
    majority_dominant: ClassVar[bool] = True
    keeps: ClassVar[str] = "takes twice that weight away and must keep some"

    def inputs_needed(self, estimate: Any) -> Any:
        return 2 * estimate + 1

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        finite = neighbourhood.finite & neighbourhood.mask
        nothing = neighbourhood.mask & ~finite.any(-1, keepdim=True)
        left = (finite | nothing).to(torch.float64)
        squared = neighbourhood.squared_distances()
        enough = (neighbourhood.size - 2 * neighbourhood.estimate).unsqueeze(-1).to(torch.float64)
        best, least = normalised(left), torch.full_like(left[..., :1], torch.inf)
        takes = torch.ones_like(least, dtype=torch.bool)
        for _ in range(left.shape[-1]):  # each round takes all of somebody's weight
            going_on = takes & (left.sum(-1, keepdim=True) > enough + ROUNDING)
            if answered_at_once() and not bool(going_on.any()):
                break
            here = going_on.squeeze(-1) if answered_at_once() else slice(None)
            before, going_on = left[here], going_on[here]
            variance, away = widest_direction(squared[here], before)
            better = going_on & (variance < least[here])
            best[here] = torch.where(better, normalised(before), best[here])
            least[here] = torch.where(better, variance, least[here])
            farthest = (away * (before > 0)).amax(-1, keepdim=True)
            going_on &= farthest > 0  # where all are equal there is nothing to take away
            takes[here] = going_on
            rest = (1 - away / farthest).clamp_(min=0)
            smaller = (before * rest).masked_fill_(before * rest < ROUNDING, 0)
            left[here] = torch.where(going_on, smaller, before)
        return best
