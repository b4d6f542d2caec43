"""Clearing up a store: what may go, unless somebody works on it."""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from bezoar._errors import BezoarError
from bezoar.store._groups import read_group
from bezoar.store._stored_run import BrokenRunError, read_run

if TYPE_CHECKING:
    from bezoar.store._store import Store

#: A group that cannot be read, or is of other versions, may still be somebody's work. After this
#: many seconds without a change it is taken to be nobody's.
REST = 86400.0

#: A folder that may go, the name of the lock that whoever works on it holds, and a function that
#: says why nobody needs it; ``None`` if somebody may.
Candidate = tuple[Path, str, Callable[[], str | None]]


@dataclass(frozen=True)
class Removal:
    """A folder that was removed, or would be.

    Attributes:
        path: the folder.
        reason: why nobody needs it.
        size: its bytes.
    """

    path: Path
    reason: str
    size: int


def collect(store: "Store", current: Mapping[str, str] | None, dry_run: bool) -> list[Removal]:
    """Remove what nobody needs and nobody works on, or only tell; see :meth:`Store.gc`."""
    if not store.runs_folder.exists():
        return []  # nothing was ever written here
    candidates = [(path, lock, why) for path, lock, why in _candidates(store, current) if why()]
    if dry_run:
        return list(filter(None, (_tell(store, *one) for one in candidates)))
    with store.writing():
        removals = list(filter(None, (_remove(store, *one) for one in candidates)))
        for path in store.locks_folder.glob("*.lock"):
            with suppress(Timeout):  # to release a lock removes its file
                store.lock(path.stem).acquire(blocking=False).lock.release()
    return removals


def _candidates(store: "Store", current: Mapping[str, str] | None) -> Iterator[Candidate]:
    for path in folders(store.staging_folder):
        yield path, path.name, lambda: "left half-written"
    for path in folders(store.broken_folder):
        yield path, path.name, lambda: "broken, was set aside"
    for key in store.finished_keys():
        path = store.runs_folder / key
        yield path, f"{key}-repair", partial(_why_no_run, path, current)
    for path in folders(store.groups_folder):
        yield path, path.name, partial(_why_no_group, store, path, current)


def _why_no_run(folder: Path, current: Mapping[str, str] | None) -> str | None:
    """Why nobody needs a finished run; ``None`` if somebody may."""
    try:
        run = read_run(folder)
        run.verify()
    except BrokenRunError:
        return "broken"
    except BezoarError:
        return None  # a newer version, or somebody with more rights, may read it
    return "of other versions" if current is not None and run.versions != current else None


def _why_no_group(store: "Store", folder: Path, current: Mapping[str, str] | None) -> str | None:
    """Why no sweep will go on with a group; ``None`` if one may."""
    group = read_group(store, folder)
    if group is not None and all(key in store for key in group.keys):
        return "a group whose runs are finished"
    try:
        latest = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except FileNotFoundError:
        return None  # somebody just removed it
    if time.time() - latest <= REST:
        return None
    if group is None:
        return "a group that cannot be read"
    # Other versions give their runs other keys, so a sweep of today never asks for this group.
    return "a group of other versions" if current not in (None, group.versions) else None


def _tell(store: "Store", path: Path, lock: str, why: Callable[[], str | None]) -> Removal | None:
    """What would be removed, if nobody works on it. Writes nothing."""
    file = Path(store.lock(lock).lock_file)
    if file.exists():  # taking a lock makes its file, and giving back the store's removes it
        try:
            FileLock(file).acquire(blocking=False).lock.release()
        except Timeout:
            return None
    return _removal(path, why)


def _remove(store: "Store", path: Path, lock: str, why: Callable[[], str | None]) -> Removal | None:
    """Remove a folder and tell, unless somebody works on it."""
    # Moved first: if this process is killed, no half of a run is left where whole ones are.
    aside = store.staging_folder / f"removed-{secrets.token_hex(8)}"
    with ExitStack() as held:
        try:
            for name in (lock, aside.name):
                held.enter_context(store.lock(name).acquire(blocking=False))
        except Timeout:
            return None
        # Asked again: before we had the lock, it may have been replaced.
        if removal := _removal(path, why):
            os.rename(path, aside)
            if aside.is_symlink():
                aside.unlink()  # what it points to is not the store's
            else:
                shutil.rmtree(aside)
    return removal


def _removal(path: Path, why: Callable[[], str | None]) -> Removal | None:
    reason = path.exists() and why()
    files = [path] if path.is_symlink() else path.rglob("*")
    size = sum(each.lstat().st_size for each in files if each.is_symlink() or not each.is_dir())
    return Removal(path, reason, size) if reason else None


def folders(path: Path) -> list[Path]:
    """The folders in a folder, in their order; none if it is not there. Links are not followed."""
    try:
        entries = os.scandir(path)
    except FileNotFoundError:
        return []
    return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
