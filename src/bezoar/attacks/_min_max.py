"""Min-max and min-sum: as far from the mean as some regular message is from the others."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bezoar.attacks._regular_inputs import AttackOnInputs, RegularInputs, mean_and_deviation


@dataclass(frozen=True)
class _FarthestAllowed(AttackOnInputs):
    """``μ − γ p``, with the largest ``γ`` that a bound on distances allows, in closed form.

    Args:
        direction: ``p``: the ``"deviation"`` of the regular messages, their ``"mean"``, or its
            ``"sign"``.
    """

    direction: Literal["deviation", "mean", "sign"] = "deviation"

    def message(self, heard: RegularInputs) -> Tensor:
        messages = heard.messages.to(torch.float64)
        mean, deviation = mean_and_deviation(messages)
        along = {"deviation": deviation, "mean": mean, "sign": mean.sign()}[self.direction]
        # Where all messages are the same, or the direction is zero, the mean itself is sent.
        length = along.norm(dim=-1, keepdim=True)
        along = torch.where(length > 0, along / length, 0)
        apart = torch.cdist(messages, messages, compute_mode="donot_use_mm_for_euclid_dist")
        return mean - self.factor(mean.unsqueeze(1) - messages, apart, along) * along

    @abstractmethod
    def factor(self, away: Tensor, apart: Tensor, along: Tensor) -> Tensor:
        """``[runs, 1]`` the largest factor ``γ``.

        Args:
            away: ``[runs, k, D]`` from the regular messages to their mean, ``μ − y_v``.
            apart: ``[runs, k, k]`` how far they are from each other.
            along: ``[runs, D]`` the direction ``p``, of length one or zero.
        """


@dataclass(frozen=True)
class MinMax(_FarthestAllowed):
    """`Min-max <https://doi.org/10.14722/ndss.2021.24498>`_: ``m = μ − γ p``.

    ``γ`` is the largest for which ``m`` is no farther from any regular message that the receiver
    hears than the two of these farthest apart are from each other.
    """

    name: ClassVar[str] = "min_max"

    def factor(self, away: Tensor, apart: Tensor, along: Tensor) -> Tensor:
        reach = apart.flatten(1).amax(-1)[:, None, None]
        # ‖(μ − y_v) − γ p‖² = reach² is a quadratic equation for γ; its larger root counts.
        half = (away * along.unsqueeze(1)).sum(-1, keepdim=True)
        rest = reach.square() - away.square().sum(-1, keepdim=True)
        return (half + (half.square() + rest.clamp(min=0)).sqrt()).amin(1)


@dataclass(frozen=True)
class MinSum(_FarthestAllowed):
    """`Min-sum <https://doi.org/10.14722/ndss.2021.24498>`_: ``m = μ − γ p``.

    ``γ`` is the largest for which the squared distances of ``m`` to the regular messages that the
    receiver hears have no larger sum than those of some regular message.
    """

    name: ClassVar[str] = "min_sum"

    def factor(self, away: Tensor, apart: Tensor, along: Tensor) -> Tensor:
        most = apart.square().sum(-1).amax(-1, keepdim=True)
        about_mean = away.square().sum((1, 2)).unsqueeze(-1)
        # Σ ‖(μ − y_v) − γ p‖² = Σ ‖μ − y_v‖² + k γ², for the differences to the mean add up to 0.
        return ((most - about_mean).clamp(min=0) / away.shape[1]).sqrt()
