"""Files written whole or not at all, even in a power cut; and versions of files."""

import errno
import hashlib
import os
import secrets
from pathlib import Path

#: When a file was last changed, its bytes, and its number: another version differs in one of them.
FileVersion = tuple[int, int, int]


def file_version(path: Path) -> FileVersion:
    """Which version of a file is there now, so that what was read of it can be kept until then."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def digest(content: bytes) -> str:
    """A checksum of some bytes."""
    return hashlib.sha256(content).hexdigest()


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, and wait until their names are on the disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file aside, then move it to its place; whoever reads sees the old one or the new."""
    make_folder(path.parent)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        write_synced(aside, content)
        os.replace(aside, path)
    except BaseException as error:
        if isinstance(error, OSError):
            # The user does not know the other file.
            error.filename, error.filename2 = str(path), None
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return path
