"""The output layer of a model: where it lies in a message, and what a rule may ask about it."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from bezoar._errors import BezoarError


@dataclass(frozen=True)
class OutputLayer:
    """Where the output layer's weights lie in a message, one row a class.

    Attributes:
        classes: the number of rows.
        features: the length of a row.
        stride: the distance between the beginnings of two rows; by default rows have no gap.
        start: where the first row begins.
    """

    classes: int
    features: int
    stride: int | None = None
    start: int = 0

    def of(self, messages: Tensor) -> Tensor:
        """``[..., classes, features]`` the output layers of messages ``[..., D]``, as a view."""
        stride = self.stride or self.features
        stop = self.start + (self.classes - 1) * stride + self.features
        if stop > messages.shape[-1]:
            raise BezoarError(
                f"head: {self.classes} × {self.features} is longer than a message of "
                f"{messages.shape[-1]}"
            )
        return messages[..., self.start :].unfold(-1, self.features, stride)[..., : self.classes, :]


class OutputLayers(Protocol):
    """What a rule may ask about the output layers of the inputs."""

    def norms(self) -> Tensor:
        """``[..., classes, m]`` the norm of each class's row; zero at inputs left out."""

    def products(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """The inner products of inputs by their rows of some classes.

        Args:
            classes: ``[..., c]`` which.

        Returns:
            ``[..., m, m]``, and the same about a common reference.
        """
