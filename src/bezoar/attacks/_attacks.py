"""What poisoned agents do to their labels."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Attack(ABC):
    """A corruption of labels; a frozen dataclass whose fields are its options.

    Args:
        fraction: the share of the eligible samples that is touched, drawn at random.

    Attributes:
        dynamic: whether the labels follow the poisoned agent's current model.
    """

    fraction: float = 1.0

    name: ClassVar[str] = ""
    dynamic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.fraction, int | float) or not 0 <= self.fraction <= 1:
            raise BezoarError(f"fraction: expected a number from 0 to 1, found {self.fraction!r}")

    def touched(self, labels: Ints, rng: np.random.Generator) -> NDArray[np.bool_]:
        """``[n]`` which samples get a corrupted label."""
        eligible = np.flatnonzero(self.eligible(labels))
        count = round(self.fraction * len(eligible))
        touched = np.zeros(len(labels), dtype=np.bool_)
        touched[rng.permutation(eligible)[:count]] = True
        return touched

    def eligible(self, labels: Ints) -> NDArray[np.bool_]:
        """``[n]`` which samples the attack is about."""
        return np.ones(len(labels), dtype=np.bool_)

    def check(self, classes: int) -> None:  # noqa: B027 - most attacks work with any classes
        """Refuse a number of classes that the attack cannot work with."""

    @abstractmethod
    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        """``[n]`` the corrupted labels, as if all samples were touched."""


@dataclass(frozen=True)
class LabelFlip(Attack):
    """Class ``b`` becomes ``B − 1 − b``, with ``B`` the number of classes."""

    name: ClassVar[str] = "label_flip"

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return classes - 1 - labels


@dataclass(frozen=True)
class DynamicLabelFlip(Attack):
    """In every iteration the label is the least likely class under the agent's current model.

    Of classes whose scores lie within a hundred-thousandth of the scores' range of the least, it
    is the lowest: early in training classes are equally unlikely but for rounding.
    """

    #: Scores this near to the least, as a share of the scores' range, count as equal to it.
    tie: ClassVar[float] = 1e-5

    name: ClassVar[str] = "dynamic_label_flip"
    dynamic: ClassVar[bool] = True

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        """The true labels: what they become is decided in training, from the current model."""
        return labels


@dataclass(frozen=True)
class RandomLabels(Attack):
    """Every touched sample gets one of the other classes, each as likely."""

    name: ClassVar[str] = "random_labels"

    def check(self, classes: int) -> None:
        if classes < 2:
            raise BezoarError("attack random_labels: needs at least two classes, found 1")

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return (labels + rng.integers(1, classes, size=len(labels))) % classes


@dataclass(frozen=True)
class Targeted(Attack):
    """Samples of one class are labelled as another.

    Args:
        fraction: the share of the source class that is touched.
        source: the class whose samples are relabelled.
        target: the class they are given.
    """

    source: int = 0
    target: int = 1

    name: ClassVar[str] = "targeted"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("source", "target"):
            found = getattr(self, field)
            if not isinstance(found, int) or isinstance(found, bool) or found < 0:
                raise BezoarError(f"{field}: expected a class from 0, found {found!r}")
        if self.source == self.target:
            raise BezoarError(f"target: must differ from source, found {self.target} for both")

    def check(self, classes: int) -> None:
        for field in ("source", "target"):
            if getattr(self, field) >= classes:
                raise BezoarError(
                    f"attack targeted: {field} {getattr(self, field)} is not a class; "
                    f"allowed: 0 … {classes - 1}"
                )

    def eligible(self, labels: Ints) -> NDArray[np.bool_]:
        return np.equal(labels, self.source)

    def corrupt(self, labels: Ints, classes: int, rng: np.random.Generator) -> Ints:
        return np.full_like(labels, self.target)
