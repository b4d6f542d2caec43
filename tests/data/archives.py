"""Small archives in the layout of the official ones, with random images."""

import gzip
import io
import pickle
import struct
import tarfile
import zipfile

import numpy as np
from PIL import Image


def tar_gz(path, files, entries=()):
    """Write a ``.tar.gz`` with some files, and entries that ``tarfile`` knows how to describe."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for entry in entries:
            archive.addfile(entry)
    return path


def cifar_batch(labels, key, rng):
    """The content of one file of CIFAR: images at random."""
    data = rng.integers(0, 256, size=(len(labels), 3072), dtype=np.uint8)
    return {"data": data, key: labels, "filenames": [f"{n}.png" for n in range(len(labels))]}


def cifar100_files(train=2, test=1, replaced=None):
    """The files of CIFAR-100, so many images a class; ``replaced`` are contents given instead."""
    rng = np.random.default_rng(0)
    contents = {
        "train": cifar_batch(list(range(100)) * train, "fine_labels", rng),
        "test": cifar_batch(list(range(100)) * test, "fine_labels", rng),
        "meta": {"fine_label_names": [f"thing {number}" for number in range(100)]},
    } | (replaced or {})
    return {
        f"cifar-100-python/{name}": content
        if isinstance(content, bytes)
        else pickle.dumps(content, protocol=2)
        for name, content in contents.items()
        if content is not None
    }


def cifar100_archive(path, train=2, test=1, replaced=None):
    return tar_gz(path, cifar100_files(train, test, replaced))


def cifar10_archive(path):
    rng = np.random.default_rng(1)
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    batches = {name: cifar_batch(list(range(10)) * 2, "labels", rng) for name in names}
    contents = batches | {"batches.meta": {"label_names": [f"thing {n}" for n in range(10)]}}
    packed = {f"cifar-10-batches-py/{k}": pickle.dumps(v, 2) for k, v in contents.items()}
    tar_gz(path, packed)
    return batches


def jpeg(pixels):
    """An image ``[height, width]`` or ``[height, width, 3]`` as a JPEG file."""
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=95)
    return content.getvalue()


def tiny_imagenet_files(classes=3, train=2, test=1, side=64):
    """The files of Tiny-ImageNet; the first image of a class is grey, the others are in colour."""
    rng = np.random.default_rng(2)
    kinds = [f"n{number:08}" for number in rng.permutation(classes) + 1000]
    root, files, annotations = "tiny-imagenet-200", {}, []
    for place, kind in enumerate(kinds):
        for number in range(train):
            shape = (side, side, 3) if number else (side, side)
            pixels = rng.integers(0, 256, size=shape, dtype=np.uint8)
            files[f"{root}/train/{kind}/images/{kind}_{number}.JPEG"] = jpeg(pixels)
        for number in range(test):
            name = f"val_{place * test + number}.JPEG"
            pixels = rng.integers(0, 256, size=(side, side, 3), dtype=np.uint8)
            files[f"{root}/val/images/{name}"] = jpeg(pixels)
            annotations.append(f"{name}\t{kind}\t0\t0\t63\t63")
    files[f"{root}/wnids.txt"] = "\n".join(kinds).encode()
    words = (f"{kind}\tname of {kind}, another name" for kind in kinds)
    files[f"{root}/words.txt"] = "\n".join(words).encode()
    files[f"{root}/val/val_annotations.txt"] = "\n".join(annotations).encode()
    return files


def write_zip(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tiny_imagenet_archive(path, **sizes):
    return write_zip(path, tiny_imagenet_files(**sizes))


def idx(array):
    """An array of bytes in the IDX format, packed."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def everything_in(folder):
    """The names of all files and folders in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
