"""Clearing up a store: what may go, and that nobody works on it."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bezoar._errors import BezoarError
from bezoar.experiments._identity import run_key, versions
from bezoar.experiments._locks import Lock
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._stored_run import BrokenRunError, UnknownFormatError, read_run

if TYPE_CHECKING:
    from bezoar.experiments._store import Store

#: What a sweep writes into the folder of a group: the specs of its runs.
GROUP_FILE = "group.json"

#: A group's folder without that file is one that a sweep is about to begin, unless it is older
#: than so many seconds.
BEGINNING = 600.0


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
    """A folder that may go if nobody holds these locks."""

    path: Path
    reason: str
    locks: tuple[str, ...] = ()


def collect(store: "Store", outdated: bool, dry_run: bool) -> list[Removal]:
    """Remove, or only tell, what nobody needs and nobody works on; see :meth:`Store.gc`."""
    removals = []
    for candidate in _candidates(store, outdated):
        with ExitStack() as held:
            locks = [Lock.take(store.locks_folder / f"{name}.lock") for name in candidate.locks]
            for lock in filter(None, locks):
                held.enter_context(lock)
            if None in locks:
                continue
            removals.append(Removal(candidate.path, candidate.reason, _size(candidate.path)))
            if not dry_run:
                shutil.rmtree(candidate.path)
    return removals


def _candidates(store: "Store", outdated: bool) -> Iterator[_Candidate]:
    for path in _folders(store.staging_folder):
        yield _Candidate(path, "left half-written", (path.name,))
    for path in _folders(store.broken_folder):
        yield _Candidate(path, "broken, set aside")
    for key in store.finished_keys():
        if reason := _why_not(store.runs_folder / key, outdated):
            yield _Candidate(store.runs_folder / key, reason, (key, f"{key}-repair"))
    for path in _folders(store.groups_folder):
        if group := _group(store, path, outdated):
            yield group


def _why_not(folder: Path, outdated: bool) -> str | None:
    """Why a finished run is of no use, if it is not."""
    try:
        run = read_run(folder)
        run.verify()
    except BrokenRunError:
        return "broken"
    except UnknownFormatError:
        return None  # a newer version can read it
    except FileNotFoundError:
        return None
    return "of other versions" if outdated and run.versions != versions() else None


def _group(store: "Store", folder: Path, outdated: bool) -> _Candidate | None:
    """A group's folder, if no sweep will go on with it."""
    try:
        document = json.loads((folder / GROUP_FILE).read_bytes())
        keys = [run_key(RunSpec.recall(spec)) for spec in document["specs"]]
    except FileNotFoundError:
        age = time.time() - folder.stat().st_mtime
        return _Candidate(folder, "a group never begun") if age > BEGINNING else None
    except (ValueError, KeyError, TypeError, BezoarError):
        return _Candidate(folder, "a group that cannot be read")
    if store.group_folder(keys) != folder:
        reason = "a group of other versions"
        return _Candidate(folder, reason, tuple(keys)) if outdated else None
    if all(key in store for key in keys):
        return _Candidate(folder, "a group whose runs are finished", tuple(keys))
    return None


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(path) if entry.is_dir())
    except FileNotFoundError:
        return []


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
