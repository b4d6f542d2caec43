"""A classification dataset in memory, or mapped from a file."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar._options import plain_number


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and labels for training and testing.

    Arrays may be given as anything that numpy reads: arrays, lists, tensors, data frames.

    Attributes:
        name: what it is called.
        train: training samples: uint8 images ``[n, channels, height, width]`` or uint8 pixels
            ``[n, features]``, which training scales to [−1, 1], or floating-point features
            ``[n, features]``, taken as they are.
        train_labels: ``[n]`` their classes, ``0 … classes-1``, integers of any type.
        test: the same for testing.
        test_labels: the same for testing.
        classes: the number of classes, two at least; training samples are of two at least.
        class_names: a name for each class; by default its number.
        note: what a reader of results must know about the data, such as that it was cut down.
    """

    name: str
    train: NDArray[np.generic]
    train_labels: NDArray[np.int64]
    test: NDArray[np.generic]
    test_labels: NDArray[np.int64]
    classes: int
    class_names: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", whole("classes", plain_number(self.classes), 2))
        for part in ("train", "test"):
            for name in (part, f"{part}_labels"):
                object.__setattr__(self, name, _array(name, getattr(self, name)))
            _check_samples(part, getattr(self, part))
            object.__setattr__(self, f"{part}_labels", self._checked_labels(part))
        if self.train_labels.min() == self.train_labels.max():
            raise BezoarError("train_labels: expected two classes or more, found one")
        if self.train.shape[1:] != self.test.shape[1:]:
            raise BezoarError(
                f"test: expected samples of shape {list(self.sample_shape)} as in train, "
                f"found {list(self.test.shape[1:])}"
            )
        if (self.train.dtype == np.uint8) != (self.test.dtype == np.uint8):
            raise BezoarError(
                f"test: expected {self.train.dtype} as in train, found {self.test.dtype}; uint8 "
                "pixels are scaled, and floating-point features are not"
            )
        names = tuple(self.class_names) or tuple(str(kind) for kind in range(self.classes))
        if len(names) != self.classes:
            raise BezoarError(f"class_names: expected {self.classes} names, found {len(names)}")
        object.__setattr__(self, "class_names", names)

    def _checked_labels(self, part: str) -> NDArray[np.int64]:
        count, labels = len(getattr(self, part)), getattr(self, f"{part}_labels")
        if labels.shape != (count,):
            raise BezoarError(
                f"{part}_labels: expected {count} labels, found shape {list(labels.shape)}"
            )
        if not np.issubdtype(labels.dtype, np.integer):
            raise BezoarError(f"{part}_labels: expected integers, found {labels.dtype}")
        if labels.min() < 0 or labels.max() >= self.classes:
            raise BezoarError(
                f"{part}_labels: expected 0 … {self.classes - 1}, "
                f"found {labels.min()} … {labels.max()}"
            )
        checked: NDArray[np.int64] = labels.astype(np.int64, copy=False)
        return checked

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.sample_shape))
        samples = f"{len(self.train):,} + {len(self.test):,} samples of {shape}"
        return f"Dataset({self.name}: {samples}, {self.classes} classes)"

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of a sample: ``(channels, height, width)`` or ``(features,)``."""
        return self.train.shape[1:]

    @property
    def features(self) -> int:
        """The number of features of a sample; of an image, its pixels times its channels."""
        return prod(self.sample_shape)

    def drawn(self, samples: int, rng: np.random.Generator) -> "Dataset":
        """The dataset with fewer training samples, drawn without replacement, in their order."""
        count = len(self.train)
        if not 1 <= samples <= count:
            raise BezoarError(
                f"samples: expected 1 … {count:,}, as many as {self.name} has for training, found "
                f"{samples:,}"
            )
        kept = np.sort(rng.choice(count, samples, replace=False))
        note = f"{samples:,} of {count:,} training samples, drawn by the seed"
        return replace(
            self,
            train=self.train[kept],
            train_labels=self.train_labels[kept],
            note="; ".join(filter(None, (self.note, note))),
        )

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the samples, labels and number of classes; names play no part in it."""
        digest = hashlib.sha256(f"{self.classes} classes".encode())
        for part in (self.train, self.train_labels, self.test, self.test_labels):
            digest.update(f"; {part.dtype.str} {part.shape}: ".encode())
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


def read_only(dataset: Dataset) -> Dataset:
    """The dataset, made safe to share: nobody can change its arrays by accident."""
    for array in (dataset.train, dataset.train_labels, dataset.test, dataset.test_labels):
        array.setflags(write=False)
    return dataset


def _array(name: str, found: Any) -> NDArray[Any]:
    """What was given, as an array; numbers in lists are features."""
    try:
        array = np.asarray(found.detach().cpu() if hasattr(found, "detach") else found)
    except (ValueError, TypeError, RuntimeError) as error:
        raise BezoarError(
            f"{name}: expected an array, found {type(found).__name__}: {error}"
        ) from None
    if array.ndim == 0:
        raise BezoarError(f"{name}: expected an array, found {type(found).__name__}")
    features = isinstance(found, list | tuple) and not name.endswith("_labels")
    if (features and array.dtype.kind in "iu") or array.dtype == np.longdouble:
        return array.astype(np.float64)  # torch has no longer ones
    # torch reads no numbers whose bytes are in another order than the machine's.
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_samples(part: str, samples: NDArray[np.generic]) -> None:
    if samples.ndim not in (2, 4) or samples.size == 0:
        raise BezoarError(
            f"{part}: expected samples of shape [n, features] or [n, channels, height, width], "
            f"none of them 0, found {list(samples.shape)}"
        )
    if samples.ndim == 4 and samples.dtype != np.uint8:
        raise BezoarError(f"{part}: expected images of uint8, found {samples.dtype}")
    if samples.dtype == np.uint8:
        return
    if not np.issubdtype(samples.dtype, np.floating):
        raise BezoarError(
            f"{part}: expected uint8 (pixels) or floating point (features), found {samples.dtype}"
        )
    if not np.isfinite(samples).all():
        raise BezoarError(f"{part}: expected finite numbers, found NaN or infinity")
