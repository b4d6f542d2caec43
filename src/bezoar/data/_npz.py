"""A dataset in a file of the user's own."""

import os
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar._files import FileVersion, file_version
from bezoar.data._archives import DAMAGES
from bezoar.data._dataset import Dataset, read_only

KEYS = ("x_train", "y_train", "x_test", "y_test")

#: How many channels an image may have; this tells [n, h, w, c] and [n, c, h, w] apart.
CHANNELS = (1, 3, 4)


def from_npz(path: Path) -> Dataset:
    """A dataset in an ``.npz`` file of one's own, as ``numpy.savez`` writes it.

    Args:
        path: the file. It holds the samples ``x_train`` and ``x_test``, which are uint8 images
            ``[n, h, w]``, ``[n, h, w, c]`` or ``[n, c, h, w]`` with 1, 3 or 4 channels, or
            features ``[n, features]``, and their labels ``y_train`` and ``y_test``, which are
            integers from 0. There are as many classes as the largest label says.
    """
    file = Path(os.path.expanduser(path))  # an unknown ~user stays, and is not found
    try:
        return _read(file, file_version(file))
    except OSError as error:
        raise BezoarError(f"path: {path} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=4)
def _read(path: Path, version: FileVersion) -> Dataset:
    arrays = _arrays(path)
    labels = {key: arrays[key] for key in ("y_train", "y_test")}
    count = sum(found.size for found in labels.values())
    for key, found in labels.items():
        if found.ndim != 1 or len(found) == 0 or not np.issubdtype(found.dtype, np.integer):
            raise BezoarError(
                f"{path}: {key}: expected a list of integers, found {found.dtype} of shape "
                f"{list(found.shape)}"
            )
        if found.max() > count:
            raise BezoarError(
                f"{path}: {key}: expected the numbers of classes, from 0 without gaps, found "
                f"{found.max():,} in a file of {count:,} samples"
            )
    try:
        made = Dataset(
            name=path.stem,
            train=_samples(arrays["x_train"], "train"),
            train_labels=labels["y_train"].astype(np.int64),
            test=_samples(arrays["x_test"], "test"),
            test_labels=labels["y_test"].astype(np.int64),
            classes=int(max(found.max() for found in labels.values())) + 1,
        )
    except BezoarError as error:
        raise BezoarError(f"{path}: {error}") from None
    return read_only(made)


def _arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    try:
        with path.open("rb") as content:
            if not zipfile.is_zipfile(path):
                raise ValueError("it holds a single array, is cut off, or is no archive at all")
            file = np.load(content, allow_pickle=False)
            missing = [key for key in KEYS if key not in file]
            if not missing:
                return {key: file[key] for key in KEYS}
            found = ", ".join(file.files) or "none"
    except (*DAMAGES, ValueError, MemoryError) as error:
        raise BezoarError(f"{path}: not a .npz file of plain arrays: {error}") from error
    raise BezoarError(f"{path}: expected an array {missing[0]!r}, found {found}")


def _samples(samples: NDArray[np.generic], part: str) -> NDArray[np.generic]:
    """Images as ``[n, channels, height, width]``; features as they are."""
    if samples.ndim == 3:
        return samples[:, None]
    if samples.ndim != 4:
        return samples
    first, last = samples.shape[1] in CHANNELS, samples.shape[3] in CHANNELS
    if first == last:
        raise BezoarError(
            f"{part}: expected 1, 3 or 4 channels in the second dimension or in the last, "
            f"found {list(samples.shape)}"
        )
    return samples if first else np.ascontiguousarray(samples.transpose(0, 3, 1, 2))
