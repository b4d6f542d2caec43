"""MNIST, which comes with the package, and Fashion-MNIST, both in the IDX format."""

import gzip
import hashlib
import zlib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.data._dataset import Dataset, read_only
from bezoar.data._official import OfficialFile, find

#: The four canonical files of MNIST and the md5 of their unpacked contents.
FILES = {
    "train-images-idx3-ubyte.gz": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte.gz": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte.gz": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte.gz": "27ae3e4e09519cfbb04c329615203637",
}

#: The four official files of Fashion-MNIST in the same order. Their names are those of MNIST, so
#: they lie in a folder of their own.
FASHION_FILES = tuple(
    OfficialFile(
        dataset="fashion_mnist",
        filename=f"fashion-mnist/{name}",
        md5=md5,
        url=f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}",
    )
    for name, md5 in zip(
        FILES,
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
        strict=True,
    )
)

CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


@cache
def mnist() -> Dataset:
    """The MNIST database of handwritten digits: 60,000 and 10,000 images of 28 × 28 pixels.

    By Yann LeCun, Corinna Cortes and Christopher J. C. Burges, under CC BY-SA 3.0. Read once in a
    process; the arrays are read-only.
    """
    return _dataset("mnist", map(_read_digits, FILES), tuple(map(str, range(10))))


def _read_digits(name: str) -> bytes:
    path = resources.files("bezoar.data").joinpath("mnist", name)
    try:
        content = _read_gzip(path, "mnist")
    except BezoarError as error:
        raise BezoarError(f"{error}; install bezoar again") from error
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != FILES[name]:
        raise BezoarError(
            f"mnist: {path} is damaged (md5 {found}, expected {FILES[name]}); install bezoar again"
        )
    return content


def fashion_mnist(data_dir: str | None = None) -> Dataset:
    """Fashion-MNIST: 60,000 and 10,000 images of clothes of 28 × 28 pixels in 10 classes.

    By Han Xiao, Kashif Rasul and Roland Vollgraf (Zalando), under the MIT licence. Downloaded once
    if it is not found.

    Args:
        data_dir: the folder whose folder ``fashion-mnist`` has the four official files. By
            default the folder that ``BEZOAR_DATA`` names, then the cache folder.
    """
    return _read_clothes(*(find(file, data_dir).path for file in FASHION_FILES))


@lru_cache(maxsize=2)
def _read_clothes(*paths: Path) -> Dataset:
    contents = (_read_gzip(path, "fashion_mnist") for path in paths)
    return _dataset("fashion_mnist", contents, CLOTHES)


def _read_gzip(path: Traversable, dataset: str) -> bytes:
    """The content of a packed file of a dataset."""
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise BezoarError(f"{dataset}: cannot read {path}: {error}") from error


def _dataset(name: str, contents: Iterable[bytes], class_names: tuple[str, ...]) -> Dataset:
    """Grey images from four files: training images, their labels, and the same for testing."""
    train, train_labels, test, test_labels = map(parse_idx, contents)
    return read_only(
        Dataset(
            name=name,
            train=train[:, None],
            train_labels=train_labels.astype(np.int64),
            test=test[:, None],
            test_labels=test_labels.astype(np.int64),
            classes=len(class_names),
            class_names=class_names,
        )
    )


def parse_idx(content: bytes) -> NDArray[np.uint8]:
    """An array of bytes in the IDX format: two zeros, type 8, rank, then the sizes, big-endian."""
    rank = content[3]
    shape = np.frombuffer(content, dtype=">u4", count=rank, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * rank).reshape(shape)
