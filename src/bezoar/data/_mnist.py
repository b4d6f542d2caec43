"""MNIST, which comes with the package."""

import hashlib
from functools import cache
from importlib import resources

from bezoar._errors import BezoarError
from bezoar.data._dataset import Dataset
from bezoar.data._idx import idx_dataset, read_gzip

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
    return idx_dataset("mnist", map(_read, FILES), tuple(map(str, range(10))))


def _read(name: str) -> bytes:
    path = resources.files("bezoar.data").joinpath("mnist", name)
    try:
        content = read_gzip(path, "mnist")
    except BezoarError as error:
        raise BezoarError(f"{error}; install bezoar again") from error
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != FILES[name]:
        raise BezoarError(
            f"mnist: {path} is damaged (md5 {found}, expected {FILES[name]}); install bezoar again"
        )
    return content
