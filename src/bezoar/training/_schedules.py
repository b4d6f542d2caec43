"""Step sizes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from bezoar._options import Part, Positive


class Schedule(Part, ABC):
    """A step size for every iteration; a frozen dataclass whose fields are its options."""

    @abstractmethod
    def __call__(self, iteration: int, iterations: int) -> float:
        """The step size of one iteration, counted from 1, of so many in all."""


@dataclass(frozen=True)
class _Scaled(Schedule):
    """A schedule with a scale.

    Args:
        scale: the factor ``γ``.
    """

    scale: Positive = 0.1


@dataclass(frozen=True)
class InverseSqrt(_Scaled):
    """``γ/√k``, the paper's schedule; the first iteration has ``k = 1``."""

    name: ClassVar[str] = "inverse_sqrt"

    def __call__(self, iteration: int, iterations: int) -> float:
        return self.scale / sqrt(iteration)


@dataclass(frozen=True)
class Constant(_Scaled):
    """``γ`` throughout."""

    name: ClassVar[str] = "constant"

    def __call__(self, iteration: int, iterations: int) -> float:
        return self.scale


@dataclass(frozen=True)
class Horizon(_Scaled):
    """``γ/√K`` throughout, with ``K`` the number of iterations; the theorems have ``γ = 1``."""

    scale: Positive = 1.0

    name: ClassVar[str] = "horizon"

    def __call__(self, iteration: int, iterations: int) -> float:
        return self.scale / sqrt(iterations)


#: Every schedule by its name.
SCHEDULES: dict[str, type[Schedule]] = {
    kind.name: kind for kind in (InverseSqrt, Constant, Horizon)
}
