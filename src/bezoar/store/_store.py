"""The store: every finished run once, as a whole, under the hash of what it is.

    format.json     the version of this layout
    runs/<key>/     finished runs; see _stored_run
    work/staging/   runs that are being written; moved to runs/ when they are whole
    work/locks/     who works on what; freed by the system when a process dies
    work/groups/    groups of runs under way, with their checkpoints
    work/broken/    runs that were found damaged, set aside

Readers take no locks: what is in ``runs/`` is never changed, only added, set aside when it is
found broken (:meth:`Store.repair`), or removed by :meth:`Store.gc`.
"""

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import Timeout

from bezoar._checks import folder
from bezoar._errors import BezoarError
from bezoar._files import make_folder, sync_folder, write_whole
from bezoar._lock import Lock
from bezoar.store._gc import Removal, collect, folders
from bezoar.store._groups import Group, read_group
from bezoar.store._stored_run import (
    DIGITS,
    BrokenRunError,
    Finished,
    StoredRun,
    UnknownFormatError,
    read_run,
    write_run,
)

#: The version of the layout that this code writes and the newest that it reads.
FORMAT = 1

FORMAT_FILE = "format.json"

_KEY = re.compile(rf"[0-9a-f]{{{DIGITS}}}")
_PREFIX = re.compile(rf"[0-9a-f]{{4,{DIGITS}}}")

#: What a user can do about an error of the system, by its number.
_ADVICE = {
    errno.ENOSPC: "free some space there, or choose another store",
    errno.EDQUOT: "free some space there, or choose another store",
    errno.EROFS: "choose a store that can be written to",
    errno.EACCES: "choose a store that you may write to",
    errno.EPERM: "choose a store that you may write to",
    errno.ENOTDIR: "a file is where a folder is needed; move it, or choose another store",
}


class StoreError(BezoarError):
    """The store cannot be used: the disk is full, or it may not be written."""


class Store:
    """Finished runs in a folder, which is made when something is first written.

    Raises:
        UnknownFormatError: if a newer version of bezoar wrote the store.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = folder("store", path)
        self.runs_folder = self.path / "runs"
        self.staging_folder = self.path / "work" / "staging"
        self.locks_folder = self.path / "work" / "locks"
        self.groups_folder = self.path / "work" / "groups"
        self.broken_folder = self.path / "work" / "broken"
        self._check_format()

    @classmethod
    def find(cls, path: str | Path) -> "Store":
        """The store that is at ``path`` or in its folder ``store``; there must be one."""
        there = folder("store", path)
        for found in (there, there / "store"):
            if (found / FORMAT_FILE).exists() or (found / "runs").is_dir():
                return cls(found)
        raise BezoarError(f"store: there is none at {path}; 'bezoar sweep' makes one")

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def __contains__(self, key: str) -> bool:
        """Whether the store has the run, damaged or not; see :meth:`is_finished`."""
        return (self.runs_folder / _checked(key)).is_dir()

    def is_finished(self, key: str) -> bool:
        """Whether the store has the run, undamaged.

        Raises:
            UnknownFormatError: if a newer version wrote it.
        """
        if key not in self:
            return False
        try:
            read_run(self.runs_folder / key).verify()
        except BrokenRunError:
            return False
        return True

    def load(self, wanted: str) -> StoredRun:
        """A finished run, by its key or the beginning of its key.

        Raises:
            BrokenRunError: if it is damaged.
            UnknownFormatError: if a newer version wrote it.
        """
        if not isinstance(wanted, str) or not _PREFIX.fullmatch(wanted):
            raise BezoarError(
                f"run: expected 4 to {DIGITS} hex digits of a run's key, found {wanted!r}"
            )
        if _KEY.fullmatch(wanted):
            if wanted not in self:
                raise BezoarError(f"run: {wanted} is not in the store {self.path}")
            return read_run(self.runs_folder / wanted)
        found = [key for key in self.finished_keys() if key.startswith(wanted)]
        if len(found) > 1:
            raise BezoarError(f"run: {wanted!r} is the beginning of {', '.join(found)}; give more")
        if not found:
            raise BezoarError(f"run: no key in the store {self.path} begins with {wanted!r}")
        return read_run(self.runs_folder / found[0])

    def finished_keys(self) -> list[str]:
        """The keys of all finished runs, ascending."""
        try:
            return sorted(filter(_KEY.fullmatch, os.listdir(self.runs_folder)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"store: cannot read {self.path}: {error.strerror}") from error

    def runs(self, broken: Callable[[BezoarError], Any] | None = None) -> Iterator[StoredRun]:
        """Every finished run, by key.

        Args:
            broken: is called with the error of each run that cannot be read. Without it the first
                such run is an error.
        """
        for key in self.finished_keys():
            try:
                yield read_run(self.runs_folder / key)
            except BezoarError as error:
                if key not in self:
                    continue  # just set aside or removed by somebody else
                if broken is None:
                    raise
                broken(error)

    def save(
        self, key: str, run: Finished, provenance: Mapping[str, Any], keep_models: bool = False
    ) -> StoredRun:
        """Add a finished run; one that is already there stays as it is.

        Provenance is where, when and how it was computed.

        Raises:
            StoreError: if the disk is full or the store may not be written. Nothing is left.
        """
        staging = self.staging_folder / f"{_checked(key)}-{secrets.token_hex(4)}"
        # The lock tells whoever clears up that somebody is still writing there.
        with self.writing(), self.lock(staging.name):
            try:
                staging.mkdir()
                write_run(staging, key, run, provenance, keep_models)
                self.repair(key)
                try:
                    os.rename(staging, self.runs_folder / key)
                except OSError:
                    if key not in self:  # otherwise somebody was faster
                        raise
                sync_folder(self.runs_folder)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        return self.load(key)

    def group(
        self,
        keys: Collection[str],
        specs: Collection[dict[str, Any]],
        versions: Mapping[str, str] | None = None,
    ) -> Group:
        """A group of runs that are trained together, in this order; nothing is written.

        Relative paths in the specs are relative to the working folder. The versions of what
        computes the runs let :meth:`gc` tell when nobody does any more.
        """
        return Group(self, tuple(keys), tuple(specs), versions, Path.cwd())

    def begun_groups(self) -> list[Group]:
        """The groups that are written down, whoever works on them; large ones first."""
        found = (read_group(self, path) for path in folders(self.groups_folder))
        # A group that was taken apart contains those of its single runs, and must come before them.
        return sorted(filter(None, found), key=lambda group: -len(group.keys))

    def lock(self, name: str) -> Lock:
        """A lock between processes, which the system frees when a process dies."""
        return Lock(self.locks_folder / f"{name}.lock", thread_local=False)

    def repair(self, key: str) -> Path | None:
        """Set a run aside if it is damaged, so that it counts as not finished.

        Returns:
            Where it was moved to; ``None`` if there was nothing to do.
        """
        if key not in self or self.is_finished(key):
            return None
        aside = self.broken_folder / f"{key}-{secrets.token_hex(4)}"
        # Looked at again under a lock: another process may just have repaired and replaced it.
        with self.writing(), self.lock(f"{key}-repair"):
            if key not in self or self.is_finished(key):
                return None
            make_folder(self.broken_folder)
            os.rename(self.runs_folder / key, aside)
            sync_folder(self.broken_folder)
            sync_folder(self.runs_folder)
        return aside

    def gc(self, outdated: Mapping[str, str] | None = None, dry_run: bool = False) -> list[Removal]:
        """Remove what nobody needs and nobody works on.

        That is: what a killed process left half-written, broken runs, and groups all of whose
        runs are finished.

        Args:
            outdated: today's versions. If given, runs of other versions go too, and groups of
                other versions that nobody wrote to for a day.
            dry_run: only tell what would be removed.
        """
        return collect(self, outdated, dry_run)

    def _check_format(self) -> None:
        path = self.path / FORMAT_FILE
        try:
            found = json.loads(path.read_bytes())["format"]
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise StoreError(f"store: {self.path} is not a folder") from None
        except OSError as error:
            raise StoreError(f"store: cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            found = None
        if not isinstance(found, int) or found < 1:
            raise StoreError(f'store: {path} is damaged; it should hold {{"format": {FORMAT}}}')
        if found > FORMAT:
            raise UnknownFormatError(
                f"store: {path} says format {found}, this version of bezoar knows formats up to "
                f"{FORMAT}; a newer bezoar reads it"
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Use it around what writes to the store: it makes the folders and explains errors.

        Raises:
            StoreError: for any error of the system.
            Timeout: if somebody else holds a lock that was asked for.
        """
        try:
            for path in (self.runs_folder, self.staging_folder, self.locks_folder):
                make_folder(path)
            if not (self.path / FORMAT_FILE).exists():
                content = json.dumps({"format": FORMAT, "what": "a store of bezoar runs"}) + "\n"
                write_whole(self.path / FORMAT_FILE, content.encode())
            yield
        except Timeout:
            raise  # it is an OSError, too, but nothing is wrong with the store
        except OSError as error:
            advice = _ADVICE.get(error.errno or 0, "choose another store")
            raise StoreError(
                f"store: cannot write to {self.path}: {error.strerror or error}; {advice}"
            ) from error


def _checked(key: str) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise BezoarError(f"run: expected a key of {DIGITS} hex digits, found {key!r}")
    return key
