"""Tiny-ImageNet."""

import io
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.data._archives import open_zip
from bezoar.data._dataset import Dataset
from bezoar.data._decoded import through_cache
from bezoar.data._official import OfficialFile, find

ARCHIVE = OfficialFile(
    dataset="tiny_imagenet",
    filename="tiny-imagenet-200.zip",
    md5="90528d7ca1a48142e341f4ef8d21d0de",
    url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
    cut_down="tiny-imagenet-200-*.zip",
)

#: Training and validation images a class in the official archive.
WHOLE = (500, 50)

#: Height and width of an image.
SIDE = 64

_ROOT = "tiny-imagenet-200"


def tiny_imagenet(data_dir: str | None = None) -> Dataset:
    """Tiny-ImageNet: 100,000 and 10,000 colour images of 64 × 64 pixels in 200 classes.

    Of Stanford's course CS231n, from ImageNet. Classes are in the order of their WordNet numbers.
    The validation images are for testing, since the archive has no labels for its test images.
    Greyscale images become RGB. Downloaded once if it is not found.

    Args:
        data_dir: the folder of ``tiny-imagenet-200.zip`` or of one archive in the same layout
            that was cut down, named ``tiny-imagenet-200-….zip``; the dataset's note says so. By
            default the folder that ``BEZOAR_DATA`` names, then the cache folder.
    """
    return through_cache(find(ARCHIVE, data_dir), _decode, ARCHIVE.dataset, WHOLE)


def _decode(path: Path) -> Dataset:
    with open_zip(path) as archive:
        kinds = sorted(_lines(archive, "wnids.txt"))
        if len(set(kinds)) < max(len(kinds), 2):
            raise BezoarError(f"{path}: expected two or more different lines in wnids.txt")
        words = _columns(archive, "words.txt")
        train_files, test_files = _files(archive, kinds)
        train, test = (_images(archive, files) for files in (train_files, test_files))
    return Dataset(
        name=ARCHIVE.dataset,
        train=train,
        train_labels=np.array([label for _, label in train_files], dtype=np.int64),
        test=test,
        test_labels=np.array([label for _, label in test_files], dtype=np.int64),
        classes=len(kinds),
        class_names=tuple(words.get(kind, kind).split(",")[0] for kind in kinds),
    )


def _files(
    archive: ZipFile, kinds: list[str]
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The names and labels of the training images, and of the validation images."""
    folders = {f"train/{kind}/images": label for label, kind in enumerate(kinds)}
    annotations = _columns(archive, "val/val_annotations.txt")
    train, test = [], []
    for name in sorted(archive.namelist()):
        folder, _, file = name.removeprefix(f"{_ROOT}/").rpartition("/")
        if folder in folders and file:
            train.append((name, folders[folder]))
        elif folder == "val/images" and file:
            if annotations.get(file) not in kinds:
                raise BezoarError(
                    f"{archive.filename}: expected a class of wnids.txt for {file} in "
                    f"val_annotations.txt, found {annotations.get(file)}"
                )
            test.append((name, kinds.index(annotations[file])))
    return train, test


def _lines(archive: ZipFile, name: str) -> list[str]:
    try:
        content = archive.read(f"{_ROOT}/{name}").decode()
    except KeyError:
        raise BezoarError(
            f"{archive.filename}: expected a file {_ROOT}/{name}, found none"
        ) from None
    return [line.rstrip() for line in content.split("\n") if line.strip()]


def _columns(archive: ZipFile, name: str) -> dict[str, str]:
    """The second column of a file by its first."""
    rows = [line.split("\t") for line in _lines(archive, name)]
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _images(archive: ZipFile, files: list[tuple[str, int]]) -> NDArray[np.uint8]:
    """``[n, 3, 64, 64]`` the images."""
    images = np.empty((len(files), 3, SIDE, SIDE), dtype=np.uint8)
    for image, (name, _) in zip(images, files, strict=True):
        image[...] = _pixels(archive.read(name), f"{archive.filename}: {name}")
    return images


def _pixels(content: bytes, name: str) -> NDArray[np.uint8]:
    """``[3, 64, 64]`` an image; its size is judged before it is decoded."""
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(content), formats=("JPEG",))
        if image.size != (SIDE, SIDE):
            width, height = image.size
            raise BezoarError(f"{name}: expected {SIDE} × {SIDE} pixels, found {width} × {height}")
        return np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise BezoarError(f"{name}: cannot be decoded: {error}") from error
