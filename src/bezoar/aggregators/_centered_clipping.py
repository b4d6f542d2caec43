"""Centered clipping: take only so much from anyone."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar._options import AtLeastOne, Positive
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import WeightedAggregator, one_hot

#: What the paper's authors use for softmax regression.
THRESHOLD = 0.03


@dataclass(frozen=True)
class CenteredClipping(WeightedAggregator):
    """`Centered clipping <https://arxiv.org/abs/2012.10333>`_ around the own model.

    ``s ← s + (1/N̄_w) Σ_v clip(y_v − s, τ)``, repeated, from ``s = y_w``, or from the agent's last
    output if it has memory. An input that is not finite has no direction and moves nothing; a
    starting point that is not finite stays.

    Args:
        threshold: the clipping threshold ``τ``.
        steps: the number of repetitions ``T``.
        memory: start from the agent's last output instead of its own message, as in the code of
            the paper's authors. Before the first exchange that is the starting model.
    """

    threshold: Positive = THRESHOLD
    steps: AtLeastOne = 1
    memory: bool = False

    name: ClassVar[str] = "centered_clipping"
    label: ClassVar[str] = "CC"
    colour: ClassVar[str] = "#CC79A7"
    marker: ClassVar[str] = "D"
    breakdown: ClassVar[float] = 1.0
    majority_dominant: ClassVar[bool] = False

    def remembers(self) -> tuple[str, ...]:
        return ("previous_output",) if self.memory else ()

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        slot = neighbourhood.remembered["previous_output"] if self.memory else 0
        centre = one_hot(neighbourhood.finite, slot)
        uniform = 1 / neighbourhood.size.unsqueeze(-1).to(torch.float64)
        for _ in range(self.steps):
            distances = neighbourhood.squared_distances_to(centre).sqrt_()
            moved = uniform * clipping_factor(neighbourhood, distances, self.threshold, slot)
            centre = centre * (1 - moved.sum(-1, keepdim=True)) + moved
        return centre


def clipping_factor(
    neighbourhood: Neighbourhood, distances: Tensor, threshold: float | Tensor, start: int = 0
) -> Tensor:
    """``[..., m]`` the factor ``min(1, τ/‖d‖)``; zero where there is nothing to move towards.

    Args:
        neighbourhood: the inputs.
        distances: ``[..., m]`` their distances ``‖d‖``.
        threshold: ``τ``, perhaps one for each agent.
        start: the slot that clipping starts from.
    """
    # Division by zero gives infinity, then 1. Zero by zero does not matter: nothing moves.
    factor = (threshold / distances).clamp_(max=1).nan_to_num_(nan=1)
    finite = neighbourhood.finite
    usable = finite & neighbourhood.mask & finite[..., start : start + 1]
    return factor.masked_fill_(~usable, 0)
