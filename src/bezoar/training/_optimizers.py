"""What a local update makes of gradients."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bezoar._options import BelowOne, Part


@dataclass(frozen=True)
class Optimizer(Part, ABC):
    """A direction for every local update ``y = x − γ d``; its fields are its options.

    Attributes:
        remembers: the names of the tensors that it keeps from one iteration to the next, each as
            large as the models. They start at zero.
    """

    remembers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def direction(self, gradients: Tensor, memory: Mapping[str, Tensor]) -> Tensor:
        """The direction ``d``.

        Args:
            gradients: gradients of some agents, weight decay included.
            memory: what it remembers for the same agents; it is updated in place.
        """


@dataclass(frozen=True)
class PlainStep(Optimizer):
    """Gradient descent: ``d = g``."""

    name: ClassVar[str] = "plain"

    def direction(self, gradients: Tensor, memory: Mapping[str, Tensor]) -> Tensor:
        return gradients


@dataclass(frozen=True)
class _WithMomentum(Optimizer):
    """An optimiser that keeps a momentum ``m``.

    Args:
        beta: how much of the momentum stays, ``β``.
    """

    beta: BelowOne = 0.9

    remembers: ClassVar[tuple[str, ...]] = ("momentum",)


@dataclass(frozen=True)
class Momentum(_WithMomentum):
    """An average of gradients that forgets: ``m ← β m + (1 − β) g``, ``d = m``."""

    name: ClassVar[str] = "momentum"

    def direction(self, gradients: Tensor, memory: Mapping[str, Tensor]) -> Tensor:
        return memory["momentum"].mul_(self.beta).add_(gradients, alpha=1 - self.beta)


@dataclass(frozen=True)
class HeavyBall(_WithMomentum):
    """Polyak's heavy ball: ``m ← β m + g``, ``d = m``."""

    name: ClassVar[str] = "heavy_ball"

    def direction(self, gradients: Tensor, memory: Mapping[str, Tensor]) -> Tensor:
        return memory["momentum"].mul_(self.beta).add_(gradients)


@dataclass(frozen=True)
class Nesterov(_WithMomentum):
    """Nesterov's momentum as PyTorch has it: ``m ← β m + g``, ``d = g + β m``."""

    name: ClassVar[str] = "nesterov"

    def direction(self, gradients: Tensor, memory: Mapping[str, Tensor]) -> Tensor:
        momentum = memory["momentum"].mul_(self.beta).add_(gradients)
        return gradients.add_(momentum, alpha=self.beta)


#: Every optimiser by its name.
OPTIMIZERS: dict[str, type[Optimizer]] = {
    kind.name: kind for kind in (PlainStep, Momentum, HeavyBall, Nesterov)
}
