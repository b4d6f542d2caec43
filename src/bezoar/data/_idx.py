"""The IDX format, in which MNIST and datasets like it are published."""

import gzip
import zlib
from collections.abc import Iterable
from importlib.resources.abc import Traversable

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.data._dataset import Dataset


def read_gzip(path: Traversable, dataset: str) -> bytes:
    """The content of a packed file of a dataset."""
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise BezoarError(f"{dataset}: cannot read {path}: {error}") from error


def idx_dataset(name: str, contents: Iterable[bytes], class_names: tuple[str, ...]) -> Dataset:
    """Grey images from four files: training images, their labels, and the same for testing."""
    train, train_labels, test, test_labels = map(parse_idx, contents)
    return Dataset(
        name=name,
        train=train[:, None],
        train_labels=train_labels.astype(np.int64),
        test=test[:, None],
        test_labels=test_labels.astype(np.int64),
        classes=len(class_names),
        class_names=class_names,
    )


def parse_idx(content: bytes) -> NDArray[np.uint8]:
    """An array of bytes in the IDX format: two zeros, type 8, rank, then the sizes, big-endian."""
    rank = content[3]
    shape = np.frombuffer(content, dtype=">u4", count=rank, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)
