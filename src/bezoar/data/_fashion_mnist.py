"""Fashion-MNIST."""

import gzip
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.data._dataset import Dataset
from bezoar.data._idx import parse_idx
from bezoar.data._official import OfficialFile, find

#: The four official files in the order of a dataset's arrays. Their names are those of MNIST, so
#: they lie in a folder of their own.
FILES = tuple(
    OfficialFile(
        dataset="fashion_mnist",
        filename=f"fashion-mnist/{name}",
        md5=md5,
        url=f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}",
    )
    for name, md5 in (
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    )
)

CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def fashion_mnist(data_dir: str | None = None) -> Dataset:
    """Fashion-MNIST: 60,000 and 10,000 images of clothes of 28 × 28 pixels in 10 classes.

    By Han Xiao, Kashif Rasul and Roland Vollgraf (Zalando), under the MIT licence. Downloaded once
    if it is not found.

    Args:
        data_dir: the folder whose folder ``fashion-mnist`` has the four official files. By
            default the folder that ``BEZOAR_DATA`` names, then the cache folder.
    """
    return _read(*(find(file, data_dir).path for file in FILES))


@lru_cache(maxsize=2)
def _read(*paths: Path) -> Dataset:
    train, train_labels, test, test_labels = (_unpacked(path) for path in paths)
    return Dataset(
        name="fashion_mnist",
        train=train[:, None],
        train_labels=train_labels.astype(np.int64),
        test=test[:, None],
        test_labels=test_labels.astype(np.int64),
        classes=len(CLASS_NAMES),
        class_names=CLASS_NAMES,
    )


def _unpacked(path: Path) -> NDArray[np.uint8]:
    try:
        return parse_idx(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, zlib.error) as error:
        raise BezoarError(f"fashion_mnist: cannot read {path}: {error}") from error
