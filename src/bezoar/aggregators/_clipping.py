"""Centered clipping and clipped gossip: take only so much from anyone."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._registry import choose
from bezoar.aggregators._base import WeightedAggregator
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._seats import Estimate
from bezoar.networks import MIXINGS

#: What the paper's authors use for softmax regression.
THRESHOLD = 0.03


@dataclass(frozen=True)
class CenteredClipping(WeightedAggregator):
    """`Centered clipping <https://arxiv.org/abs/2012.10333>`_ around the own model.

    ``s ← s + (1/N̄_w) Σ_v clip(y_v − s, τ)`` from ``s = y_w``, repeated. A neighbour's message
    that is not finite has no direction and moves nothing; an own model that is not finite stays.

    Args:
        threshold: the clipping threshold ``τ``.
        steps: the number of repetitions ``T``.
    """

    threshold: float = THRESHOLD
    steps: int = 1

    name: ClassVar[str] = "centered_clipping"
    label: ClassVar[str] = "CC"

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)
        if not isinstance(self.steps, int) or isinstance(self.steps, bool) or self.steps < 1:
            raise BezoarError(f"steps: expected an integer of at least 1, found {self.steps!r}")

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        centre = torch.zeros_like(neighbourhood.finite, dtype=torch.float64)
        centre[..., 0] = 1
        uniform = 1 / neighbourhood.size.unsqueeze(-1).to(torch.float64)
        for _ in range(self.steps):
            distances = neighbourhood.squared_distances_to(centre).sqrt_()
            moved = uniform * _clipped(neighbourhood, distances, self.threshold)
            centre = centre * (1 - moved.sum(-1, keepdim=True)) + moved
        return centre


@dataclass(frozen=True)
class ClippedGossip(WeightedAggregator):
    """`Clipped gossip <https://arxiv.org/abs/2202.01545>`_: ``y_w + Σ_v E_wv clip(y_v − y_w, τ)``.

    Messages that are not finite are treated as in centered clipping.

    Args:
        threshold: the clipping threshold ``τ``.
        mixing: the mixing matrix, ``"metropolis"`` or ``"equal"``.
    """

    threshold: float = THRESHOLD
    mixing: str = "metropolis"

    name: ClassVar[str] = "clipped_gossip"
    label: ClassVar[str] = "CG"

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)
        choose("mixing", self.mixing, MIXINGS)

    def wiring(self) -> tuple[str, Estimate]:
        return self.mixing, "true"

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        own = torch.zeros_like(neighbourhood.finite, dtype=torch.float64)
        own[..., 0] = 1
        distances = neighbourhood.squared_distances_to(own).sqrt_()
        moved = neighbourhood.mixing * _clipped(neighbourhood, distances, self.threshold)
        return own * (1 - moved.sum(-1, keepdim=True)) + moved


def _clipped(neighbourhood: Neighbourhood, distances: Tensor, threshold: float) -> Tensor:
    """``[..., m]`` the factor ``min(1, τ/‖d‖)``; zero where there is nothing to move towards."""
    factor = (threshold / distances).clamp_(max=1)  # division by zero gives infinity, then 1
    usable = neighbourhood.finite & neighbourhood.finite[..., :1]
    return factor.masked_fill_(~usable, 0)


def _check_threshold(threshold: float) -> None:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not threshold > 0:
        raise BezoarError(f"threshold: expected a positive number, found {threshold!r}")
