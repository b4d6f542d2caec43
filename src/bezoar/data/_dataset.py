"""A classification dataset in memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and labels for training and testing.

    Attributes:
        name: what it is called.
        train: ``[n, features]`` training samples: uint8 pixels, which training scales to
            [−1, 1], or floating-point features, taken as they are.
        train_labels: ``[n]`` their classes, ``0 … classes-1``.
        test: the same for testing.
        test_labels: the same for testing.
        classes: the number of classes.
    """

    name: str
    train: NDArray[np.generic]
    train_labels: NDArray[np.int64]
    test: NDArray[np.generic]
    test_labels: NDArray[np.int64]
    classes: int

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            samples, labels = getattr(self, part), getattr(self, f"{part}_labels")
            if samples.ndim != 2 or len(samples) == 0:
                raise BezoarError(
                    f"{part}: expected samples of shape [n, features], found {samples.shape}"
                )
            if samples.dtype != np.uint8 and not np.issubdtype(samples.dtype, np.floating):
                raise BezoarError(
                    f"{part}: expected uint8 or floating point, found {samples.dtype}"
                )
            if labels.shape != samples.shape[:1]:
                raise BezoarError(
                    f"{part}_labels: expected {len(samples)} labels, found shape {labels.shape}"
                )
            if not np.issubdtype(labels.dtype, np.integer):
                raise BezoarError(f"{part}_labels: expected integers, found {labels.dtype}")
            if labels.min() < 0 or labels.max() >= self.classes:
                raise BezoarError(
                    f"{part}_labels: expected 0 … {self.classes - 1}, "
                    f"found {labels.min()} … {labels.max()}"
                )
        if self.train.shape[1] != self.test.shape[1]:
            raise BezoarError(
                f"test: expected {self.train.shape[1]} features as in train, "
                f"found {self.test.shape[1]}"
            )

    @property
    def features(self) -> int:
        """The number of features of a sample."""
        return int(self.train.shape[1])
