"""Decoded archives, kept in the cache folder as arrays that are mapped into memory."""

import json
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bezoar._errors import BezoarError
from bezoar._files import make_folder, sync_folder, write_synced
from bezoar.data._dataset import Dataset
from bezoar.data._official import FoundFile, cache_folder

#: Part of the name of what is kept, to be raised when archives are decoded in another way.
VERSION = 1

_ARRAYS = ("train", "train_labels", "test", "test_labels")


def through_cache(
    found: FoundFile, decode: Callable[[Path], Dataset], name: str, whole: tuple[int, int]
) -> Dataset:
    """The dataset in an archive, decoded once on a machine and read once in a process.

    ``whole`` is how many training and test images a class the official archive has. The dataset's
    note says so if this is another archive.
    """
    folder = cache_folder() / "decoded" / f"{name}-{found.md5}-v{VERSION}"
    try:
        if not folder.is_dir():
            dataset = decode(found.path)
            note = "" if found.official else _cut_down_note(dataset, whole)
            _save(replace(dataset, note=note), folder)
        return _load(folder)
    except OSError as error:
        raise BezoarError(
            f"{name}: the cache folder {folder.parent} cannot be used: {error}"
        ) from error


def _save(dataset: Dataset, folder: Path) -> None:
    """Write a folder aside, then move it to its place, so that it is there as a whole or not."""
    make_folder(folder.parent)
    aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        aside.mkdir()
        for part in _ARRAYS:
            with open(aside / f"{part}.npy", "wb") as file:
                np.save(file, getattr(dataset, part), allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
        about = {"name": dataset.name, "class_names": dataset.class_names, "note": dataset.note}
        write_synced(aside / "about.json", json.dumps(about).encode())
        sync_folder(aside)
        try:
            os.rename(aside, folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster
                raise
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@lru_cache(maxsize=8)
def _load(folder: Path) -> Dataset:
    try:
        # Plain arrays over mapped memory, read-only: numpy's own class for it is slow to index.
        arrays: dict[str, Any] = {
            part: np.asarray(np.load(folder / f"{part}.npy", mmap_mode="r", allow_pickle=False))
            for part in _ARRAYS
        }
        about = json.loads((folder / "about.json").read_bytes())
        names = tuple(about["class_names"])
        return Dataset(
            name=about["name"],
            classes=len(names),
            class_names=names,
            note=about["note"],
            **arrays,
        )
    except (ValueError, KeyError, TypeError, EOFError, FileNotFoundError) as error:
        raise BezoarError(f"{folder} is damaged ({error}); delete it to decode it again") from error


def _cut_down_note(dataset: Dataset, whole: tuple[int, int]) -> str:
    """What to say of a dataset that was not read from the official archive."""
    counts = [
        np.bincount(labels, minlength=dataset.classes)
        for labels in (dataset.train_labels, dataset.test_labels)
    ]
    if all((count == most).all() for count, most in zip(counts, whole, strict=True)):
        return "not the official archive"
    if all((count == count[0]).all() for count in counts):
        train, test = (f"{n[0]:,} of {most:,}" for n, most in zip(counts, whole, strict=True))
        return f"cut down: {train} training and {test} test images a class"
    everything = [most * dataset.classes for most in whole]
    train, test = (f"{n.sum():,} of {most:,}" for n, most in zip(counts, everything, strict=True))
    return f"cut down: {train} training and {test} test images"
