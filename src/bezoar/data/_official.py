"""Official files of datasets: where they are looked for, and how they are checked."""

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bezoar._errors import BezoarError
from bezoar._files import FileVersion, file_version
from bezoar.data._download import download

#: The environment variable that names a folder with dataset files.
DATA_VARIABLE = "BEZOAR_DATA"


@dataclass(frozen=True)
class OfficialFile:
    """A file of a dataset as its publisher offers it; its name may have a folder in front.

    ``cut_down`` is what a cut-down archive in the same layout may be called, as a pattern for
    :meth:`pathlib.Path.glob`; by default none is accepted.
    """

    dataset: str
    filename: str
    md5: str
    url: str
    cut_down: str = ""


class FoundFile(NamedTuple):
    """A file on this machine, its checksum, and whether it is the official one."""

    path: Path
    md5: str
    official: bool


def find(file: OfficialFile, data_dir: str | None = None) -> FoundFile:
    """The official file, or an archive that was cut down from it.

    If ``data_dir`` is given, the file must be there. Otherwise it is looked for in the folder
    that ``BEZOAR_DATA`` names, then in the cache folder, into which it is downloaded at last.
    """
    if data_dir is not None:
        found = _look(file, data_dir)
        if found is None:
            raise BezoarError(f"data_dir: {data_dir} lacks the file; {_advice(file)}")
        return found
    named = os.environ.get(DATA_VARIABLE)
    found = _look(file, named) if named else None
    return found or FoundFile(_download(file), file.md5, True)


def cache_folder() -> Path:
    """Where downloaded and decoded files are kept: the user's cache folder, as the system says."""
    import pooch  # takes a while to import

    return Path(pooch.os_cache("bezoar"))


def _look(file: OfficialFile, named: str) -> FoundFile | None:
    folder = Path(os.path.expanduser(named))  # an unknown ~user stays, and is not found
    official = folder / file.filename
    if official.is_file():
        found = _md5(official)
        if found != file.md5:
            hint = f"; a cut-down archive is named {file.cut_down}" if file.cut_down else ""
            raise BezoarError(
                f"{file.dataset}: {official} is damaged or not the official file (md5 {found}, "
                f"expected {file.md5}){hint}"
            )
        return FoundFile(official, found, True)
    cut_down = sorted(folder.glob(file.cut_down)) if file.cut_down else []
    if len(cut_down) > 1:
        names = ", ".join(path.name for path in cut_down)
        raise BezoarError(f"{file.dataset}: expected one archive in {folder}, found {names}")
    if not cut_down:
        return None
    found = _md5(cut_down[0])
    return FoundFile(cut_down[0], found, official=found == file.md5)


def _download(file: OfficialFile) -> Path:
    """The official file in the cache folder, downloaded if it is not there or is damaged."""
    path = cache_folder() / file.filename
    if path.is_file() and _md5(path) == file.md5:
        return path
    try:
        return download(file.url, path, file.md5)
    except (OSError, ValueError) as error:  # errors of requests are OSErrors
        raise BezoarError(
            f"{file.dataset}: cannot be downloaded: {error}; {_advice(file)}"
        ) from error


def _advice(file: OfficialFile) -> str:
    return (
        f"put {file.filename} (md5 {file.md5}, from {file.url}) into {cache_folder()}, or into a "
        f"folder that data_dir or the environment variable {DATA_VARIABLE} names"
    )


def _md5(path: Path) -> str:
    try:
        return _md5_of(path, file_version(path))
    except OSError as error:
        raise BezoarError(f"{path}: cannot be read: {error.strerror}") from error


@lru_cache(maxsize=32)
def _md5_of(path: Path, version: FileVersion) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
