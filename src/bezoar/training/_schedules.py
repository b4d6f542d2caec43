"""Step sizes."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator

from bezoar._options import AtLeastOne, Part, Positive, Share


def _ascending(found: tuple[int, ...]) -> tuple[int, ...]:
    if list(found) != sorted(set(found)):
        raise ValueError(f"expected ascending iterations, found {list(found)}")
    return found


class Schedule(Part, ABC):
    """A step size for every iteration; a frozen dataclass whose fields are its options."""

    @abstractmethod
    def __call__(self, iteration: int, iterations: int) -> float:
        """The step size of one of all iterations, counted from 1."""


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
class Inverse(_Scaled):
    """``γ/k``; the first iteration has ``k = 1``."""

    name: ClassVar[str] = "inverse"

    def __call__(self, iteration: int, iterations: int) -> float:
        return self.scale / iteration


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


@dataclass(frozen=True)
class OneCycle(_Scaled):
    """Up to ``γ`` in a straight line, then down to almost zero.

    Args:
        scale: the largest step size ``γ``.
        warm_up: the share of iterations until it is reached.
        decay: down along half a wave of the cosine, or in a straight line.
    """

    warm_up: Share = 0.2
    decay: Literal["cosine", "linear"] = "cosine"

    name: ClassVar[str] = "one_cycle"

    def __call__(self, iteration: int, iterations: int) -> float:
        up = self.warm_up * iterations
        if iteration <= up:
            return self.scale * iteration / up
        # The last iteration is one short of zero.
        left = (iterations + 1 - iteration) / (iterations + 1 - up)
        return self.scale * (left if self.decay == "linear" else (1 - cos(pi * left)) / 2)


@dataclass(frozen=True)
class Milestones(_Scaled):
    """``γ`` at first, multiplied by a factor after every milestone.

    Args:
        scale: the first step size ``γ``.
        milestones: the iterations after which it is multiplied, ascending.
        factor: by what.
    """

    milestones: Annotated[tuple[AtLeastOne, ...], AfterValidator(_ascending)] = ()
    factor: Positive = 0.1

    name: ClassVar[str] = "milestones"

    def __call__(self, iteration: int, iterations: int) -> float:
        return self.scale * self.factor ** bisect_left(self.milestones, iteration)


#: Every schedule by its name.
SCHEDULES: dict[str, type[Schedule]] = {
    kind.name: kind for kind in (InverseSqrt, Inverse, Constant, Horizon, Milestones, OneCycle)
}
