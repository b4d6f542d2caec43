"""Fashion-MNIST."""

from functools import lru_cache
from pathlib import Path

from bezoar.data._dataset import Dataset
from bezoar.data._idx import idx_dataset, read_gzip
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
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
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
    contents = (read_gzip(path, "fashion_mnist") for path in paths)
    return idx_dataset("fashion_mnist", contents, CLASS_NAMES)
