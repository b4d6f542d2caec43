"""Clearing up a store: what may go, and that nobody works on it."""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bezoar._errors import BezoarError
from bezoar.experiments._identity import run_key, versions
from bezoar.experiments._locks import Lock
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._stored_run import BrokenRunError, read_run

if TYPE_CHECKING:
    from bezoar.experiments._store import Store

#: What a sweep writes into the folder of a group: among others the specs of its runs.
GROUP_FILE = "group.json"

#: Whose work a group is cannot always be told; it is nobody's after so many seconds of rest.
REST = 86400.0


@dataclass(frozen=True)
class Removal:
    """Something that was, or would be, removed.

    Attributes:
        path: the folder.
        reason: why nobody needs it.
        size: its bytes.
    """

    path: Path
    reason: str
    size: int


@dataclass(frozen=True)
class _Candidate:
    """A folder that may go.

    Attributes:
        path: the folder.
        why: why nobody needs it; ``None`` if somebody may.
        locks: who works on it holds one of these.
    """

    path: Path
    why: Callable[[], str | None]
    locks: tuple[str, ...] = ()


def collect(store: "Store", outdated: bool, dry_run: bool) -> list[Removal]:
    """Remove, or only tell, what nobody needs and nobody works on; see :meth:`Store.gc`."""
    candidates = [one for one in _candidates(store, outdated) if one.why()]
    if dry_run:
        return [removal for one in candidates if (removal := _tell(store, one))]
    if not store.work_folder.exists():
        return []  # nothing was ever written here
    with store.writing():
        removals = [removal for one in candidates if (removal := _remove(store, one))]
        for path in store.locks_folder.glob("*.lock"):
            if lock := Lock.take(path):
                lock.release()  # which removes its file
    return removals


def _candidates(store: "Store", outdated: bool) -> Iterator[_Candidate]:
    for path in _folders(store.staging_folder):
        yield _Candidate(path, lambda: "left half-written", (path.name,))
    for path in _folders(store.broken_folder):
        yield _Candidate(path, lambda: "broken, was set aside")
    for key in store.finished_keys():
        path = store.runs_folder / key
        yield _Candidate(path, partial(_why_no_run, path, outdated), (key, f"{key}-repair"))
    for path in _folders(store.groups_folder):
        why = partial(_why_no_group, store, path, outdated)
        yield _Candidate(path, why, _keys_of_group(path) or ())


def _why_no_run(folder: Path, outdated: bool) -> str | None:
    """Why a finished run is of no use, if it is not."""
    try:
        run = read_run(folder)
        run.verify()
    except BrokenRunError:
        return "broken"
    except BezoarError:
        return None  # a newer version, or somebody with more rights, may read it
    return "of other versions" if outdated and run.versions != versions() else None


def _why_no_group(store: "Store", folder: Path, outdated: bool) -> str | None:
    """Why no sweep will go on with a group, if none will."""
    keys = _keys_of_group(folder)
    if keys and store.group_folder(keys) == folder:
        return "a group whose runs are finished" if all(key in store for key in keys) else None
    # Never begun, damaged, or of other versions: who may be working on it cannot be told.
    if not _rests(folder):
        return None
    if keys is None:
        return "a group that cannot be read"
    return "a group of other versions" if outdated else None


def _keys_of_group(folder: Path) -> tuple[str, ...] | None:
    """The keys of a group's runs, by today's versions; ``None`` where they cannot be told."""
    try:
        specs = json.loads((folder / GROUP_FILE).read_bytes())["specs"]
        return tuple(run_key(RunSpec.recall(spec)) for spec in specs)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _rests(folder: Path) -> bool:
    """Whether nothing was written there for long."""
    try:
        latest = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except FileNotFoundError:
        return False  # somebody just removed it
    return time.time() - latest > REST


def _tell(store: "Store", candidate: _Candidate) -> Removal | None:
    """What would be removed, if nobody works on it."""
    if any(Lock.is_held(store.lock_file(name)) for name in candidate.locks):
        return None
    return Removal(candidate.path, candidate.why() or "", _size(candidate.path))


def _remove(store: "Store", candidate: _Candidate) -> Removal | None:
    """Remove a folder and tell, unless somebody works on it."""
    # Moved first: if this process is killed, no half of a run is left where whole ones are.
    aside = store.staging_folder / f"removed-{secrets.token_hex(8)}"
    with ExitStack() as held:
        for name in (*candidate.locks, aside.name):
            lock = Lock.take(store.lock_file(name))
            if lock is None:
                return None
            held.enter_context(lock)
        # Asked again: before we had the locks, it may have been replaced.
        reason = candidate.path.exists() and candidate.why()
        if not reason:
            return None
        removal = Removal(candidate.path, reason, _size(candidate.path))
        os.rename(candidate.path, aside)
        shutil.rmtree(aside)
    return removal


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(path) if entry.is_dir())
    except FileNotFoundError:
        return []


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
