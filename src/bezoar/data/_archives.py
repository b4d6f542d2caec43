"""Archives from outside, read in memory: nothing of them is ever unpacked to the disk.

An archive is looked through as a whole first. Entries that lead outside, links, devices and more
bytes than any of our datasets has are refused, although nothing would be written.
"""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from bezoar._errors import BezoarError

#: The bytes an archive may hold: several times what the largest official one holds.
MOST_BYTES = 1 << 30

#: The entries an archive may have: twice what the largest official one has.
MOST_ENTRIES = 250_000

#: What is raised while a damaged archive is read.
DAMAGES = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,  # zip: encrypted, or packed in a way that is not known
    UnicodeDecodeError,
)


def read_tar(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, bytes]:
    """The files of a ``.tar.gz`` archive by their names."""
    with _refusing_damage(path), gzip.open(path) as packed:
        content = packed.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise BezoarError(f"{path}: refused: it holds more than {most_bytes:,} bytes")
    files: dict[str, bytes] = {}
    with _refusing_damage(path), tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        entries = archive.getmembers()
        for entry in entries:
            _check_entry(path, entry.name, entry.isfile() or entry.isdir())
        _check_size(path, len(entries), sum(entry.size for entry in entries), most_bytes)
        for entry in entries:
            packed_file = archive.extractfile(entry) if entry.isfile() else None
            if packed_file is not None:
                files[str(PurePosixPath(entry.name))] = packed_file.read()
    return files


@contextmanager
def open_zip(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[zipfile.ZipFile]:
    """A ``.zip`` archive that was looked through; damage found later is a BezoarError, too."""
    with _refusing_damage(path), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        for entry in entries:
            kind = stat.S_IFMT(entry.external_attr >> 16)
            _check_entry(path, entry.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR))
        _check_size(path, len(entries), sum(entry.file_size for entry in entries), most_bytes)
        yield archive


def _check_entry(path: Path, name: str, plain: bool) -> None:
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts or "\\" in name or ":" in name:
        raise BezoarError(f"{path}: refused: its entry {name!r} leads outside")
    if not plain:
        raise BezoarError(f"{path}: refused: its entry {name!r} is a link or a device")


def _check_size(path: Path, entries: int, size: int, most_bytes: int) -> None:
    if size > most_bytes or entries > MOST_ENTRIES:
        raise BezoarError(
            f"{path}: refused: expected at most {MOST_ENTRIES:,} entries of {most_bytes:,} bytes "
            f"together, found {entries:,} of {size:,}"
        )


@contextmanager
def _refusing_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGES as error:
        raise BezoarError(f"{path}: damaged or not an archive: {error}") from error
