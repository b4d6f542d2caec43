"""FoolsGold: the less weight, the more alike the updates were so far."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._options import Positive
from bezoar.aggregators._neighbourhood import Head, Neighbourhood, cosines, normalised
from bezoar.aggregators._rule import WeightedAggregator, one_hot

#: What the largest weight is lowered to, so that its logit is finite; as in the authors' code.
ALMOST_ONE = 0.99


@dataclass(frozen=True)
class FoolsGold(WeightedAggregator):
    """`FoolsGold <https://arxiv.org/abs/1808.04866>`_: little weight to those that are alike.

    An agent sums up the output layers of the updates ``y_v − x_w`` of each input over all
    iterations, with ``x_w`` its model before the local update. With ``c_uv`` the cosine similarity
    of two sums and ``m_v = max_u c_uv``, inputs that are alike by chance are pardoned: where
    ``m_u > m_v`` and ``m_u > 0``, ``c_vu ← c_vu m_v / m_u``. Weights ``a_v = 1 − max_u c_vu`` are
    cut to between 0 and 1, divided by the largest, at most 0.99, spread by
    ``κ (ln(a/(1−a)) + 1/2)``, and cut again. The weighted mean of the messages is returned, the own
    message if nobody has weight. Messages that are not finite have no weight and add nothing to the
    sums; where the own message or model is not finite, the own message stays.

    Args:
        head: ``(classes, features)``: the output layer is the first ``classes × features`` block
            of a message, one row a class. In training the model knows it.
        confidence: how far weights are spread, ``κ``.
    """

    head: Head | None = None
    confidence: Positive = 1.0

    name: ClassVar[str] = "foolsgold"
    label: ClassVar[str] = "FoolsGold"
    colour: ClassVar[str] = "#B8860B"
    marker: ClassVar[str] = "$f$"
    withstands: ClassVar[tuple[str, ...]] = ("labels", "non_finite")
    breakdown: ClassVar[float] = 0.0
    majority_dominant: ClassVar[bool] = False

    def remembers(self) -> tuple[str, ...]:
        return ("model_before_step",)

    def sums_updates(self) -> bool:
        return True

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        assert neighbourhood.gram is not None
        finite = neighbourhood.finite & neighbourhood.mask & neighbourhood.finite[..., :1]
        slot = neighbourhood.remembered["model_before_step"]
        finite = finite & neighbourhood.finite[..., slot : slot + 1]
        both = finite.unsqueeze(-1) & finite.unsqueeze(-2)
        both.diagonal(dim1=-2, dim2=-1).fill_(False)
        alike = cosines(neighbourhood.gram).masked_fill_(~both, -torch.inf)
        most = alike.amax(-1, keepdim=True)
        pardoned = (most.mT > most) & (most.mT > 0)
        alike = torch.where(pardoned, alike * (most / most.mT), alike)
        alone = 1 - alike.nan_to_num_(nan=-torch.inf).masked_fill_(~both, -torch.inf).amax(-1)
        weights = alone.clamp_(0, 1) * finite
        largest = weights.amax(-1, keepdim=True)
        weights = (weights / largest).nan_to_num_(nan=0).clamp_(max=ALMOST_ONE)
        weights = (self.confidence * (weights.logit() + 0.5)).clamp_(0, 1) * finite
        own = one_hot(neighbourhood.finite, 0)
        weights = torch.where(weights.sum(-1, keepdim=True) > 0, weights, own)
        return normalised(weights)[..., :slot]
