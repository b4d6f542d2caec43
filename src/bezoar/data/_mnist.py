"""MNIST, which comes with the package."""

import gzip
import hashlib
import zlib
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.data._dataset import Dataset
from bezoar.data._idx import parse_idx

#: The four canonical files and the md5 of their unpacked contents.
FILES = {
    "train-images-idx3-ubyte.gz": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte.gz": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte.gz": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte.gz": "27ae3e4e09519cfbb04c329615203637",
}


@cache
def mnist() -> Dataset:
    """The MNIST database of handwritten digits: 60,000 and 10,000 images of 28 × 28 pixels.

    By Yann LeCun, Corinna Cortes and Christopher J. C. Burges, under CC BY-SA 3.0. Read once in a
    process; the arrays are read-only.
    """
    train, train_labels, test, test_labels = (_read(name) for name in FILES)
    return Dataset(
        name="mnist",
        train=train[:, None],
        train_labels=train_labels.astype(np.int64),
        test=test[:, None],
        test_labels=test_labels.astype(np.int64),
        classes=10,
    )


def _read(name: str) -> NDArray[np.uint8]:
    path = resources.files("bezoar.data").joinpath("mnist", name)
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise BezoarError(f"mnist: cannot read {path}: {error}; install bezoar again") from error
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != FILES[name]:
        raise BezoarError(
            f"mnist: {path} is damaged (md5 {found}, expected {FILES[name]}); install bezoar again"
        )
    return parse_idx(content)
