"""Inner product manipulation: send a step against the regular agents' mean step."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bezoar._options import Factor
from bezoar.attacks._regular_inputs import AttackOnInputs, RegularInputs


@dataclass(frozen=True)
class IPM(AttackOnInputs):
    """`Inner product manipulation <https://arxiv.org/abs/1903.03936>`_: ``x̄ − ε · mean(y − x)``.

    ``x`` are the models of the regular agents that the receiver hears before their local updates,
    ``x̄`` their mean, ``y`` their messages.

    Args:
        scale: the factor ``ε``.
    """

    scale: Factor = 1.0

    name: ClassVar[str] = "ipm"

    def message(self, heard: RegularInputs) -> Tensor:
        before = heard.models.mean(1)
        return before - self.scale * (heard.messages.mean(1) - before)
