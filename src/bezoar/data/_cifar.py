"""CIFAR-10 and CIFAR-100."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.data._archives import read_tar
from bezoar.data._dataset import Dataset
from bezoar.data._decoded import through_cache
from bezoar.data._official import OfficialFile, find
from bezoar.data._pickles import ByteArray, read_pickle


@dataclass(frozen=True)
class _Layout:
    """How an archive is laid out: its folder, its files, and the keys in them."""

    archive: OfficialFile
    folder: str
    train: tuple[str, ...]
    test: str
    meta: str
    labels: str
    names: str
    classes: int
    whole: tuple[int, int]  # training and test images a class


CIFAR10 = _Layout(
    OfficialFile(
        dataset="cifar10",
        filename="cifar-10-python.tar.gz",
        md5="c58f30108f718f92721af3b95e74349a",
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        cut_down="cifar-10-python-*.tar.gz",
    ),
    folder="cifar-10-batches-py",
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test="test_batch",
    meta="batches.meta",
    labels="labels",
    names="label_names",
    classes=10,
    whole=(5000, 1000),
)

CIFAR100 = _Layout(
    OfficialFile(
        dataset="cifar100",
        filename="cifar-100-python.tar.gz",
        md5="eb9058c3a382ffc7106e4002c42a8d85",
        url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        cut_down="cifar-100-python-*.tar.gz",
    ),
    folder="cifar-100-python",
    train=("train",),
    test="test",
    meta="meta",
    labels="fine_labels",
    names="fine_label_names",
    classes=100,
    whole=(500, 100),
)


def cifar10(data_dir: str | None = None) -> Dataset:
    """CIFAR-10: 50,000 and 10,000 colour images of 32 × 32 pixels in 10 classes.

    By Alex Krizhevsky, Vinod Nair and Geoffrey Hinton. Downloaded once if it is not found.

    Args:
        data_dir: the folder of the archive; see :func:`cifar100`.
    """
    return _load(CIFAR10, data_dir)


def cifar100(data_dir: str | None = None) -> Dataset:
    """CIFAR-100: 50,000 and 10,000 colour images of 32 × 32 pixels in 100 classes.

    By Alex Krizhevsky, Vinod Nair and Geoffrey Hinton. Downloaded once if it is not found.

    Args:
        data_dir: the folder of ``cifar-100-python.tar.gz`` or of one archive in the same layout
            that was cut down, named ``cifar-100-python-….tar.gz``; the dataset's note says so.
            By default the folder that ``BEZOAR_DATA`` names, then the cache folder.
    """
    return _load(CIFAR100, data_dir)


def _load(layout: _Layout, data_dir: str | None) -> Dataset:
    archive = layout.archive
    found = find(archive, data_dir)
    return through_cache(found, partial(_decode, layout), archive.dataset, layout.whole)


def _decode(layout: _Layout, path: Path) -> Dataset:
    files = read_tar(path)

    def read(name: str) -> dict[str, Any]:
        if f"{layout.folder}/{name}" not in files:
            raise BezoarError(f"{path}: expected a file {layout.folder}/{name}, found none")
        content = read_pickle(files.pop(f"{layout.folder}/{name}"), f"{path}: {name}")
        if not isinstance(content, dict):
            found = type(content).__name__
            raise BezoarError(f"{path}: {name}: expected a dictionary, found a {found}")
        return content

    batches = [_batch(read(name), layout.labels, f"{path}: {name}") for name in layout.train]
    test, test_labels = _batch(read(layout.test), layout.labels, f"{path}: {layout.test}")
    names = read(layout.meta).get(layout.names)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BezoarError(f"{path}: {layout.meta}: expected a list of names in {layout.names!r}")
    return Dataset(
        name=layout.archive.dataset,
        train=np.concatenate([images for images, _ in batches]),
        train_labels=np.concatenate([labels for _, labels in batches]),
        test=test,
        test_labels=test_labels,
        classes=layout.classes,
        class_names=tuple(names),
    )


def _batch(
    batch: dict[str, Any], key: str, name: str
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """``[n, 3, 32, 32]`` images and ``[n]`` labels of one file."""
    images, labels = batch.get("data"), batch.get(key)
    if not isinstance(images, ByteArray):
        raise BezoarError(f"{name}: expected an array of bytes in 'data'")
    if images.values.ndim != 2 or images.values.shape[1] != 3 * 32 * 32:
        raise BezoarError(
            f"{name}: expected images of 3 × 32 × 32 bytes, found {list(images.values.shape)}"
        )
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise BezoarError(f"{name}: expected a list of integers in {key!r}")
    return images.values.reshape(-1, 3, 32, 32), np.array(labels, dtype=np.int64)
