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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bezoar._errors import BezoarError
from bezoar._files import make_folder, sync_folder, write_whole
from bezoar.store._gc import Removal, collect
from bezoar.store._groups import Group, begun_groups
from bezoar.store._stored_run import (
    BrokenRunError,
    Finished,
    StoredRun,
    UnknownFormatError,
    digest,
    read_run,
    write_run,
)

#: Hex digits of a run's key.
DIGITS = 32

#: The version of the layout that this code writes and the newest that it reads.
FORMAT = 1

FORMAT_FILE = "format.json"

_KEY = re.compile(rf"[0-9a-f]{{{DIGITS}}}")
_PREFIX = re.compile(rf"[0-9a-f]{{4,{DIGITS}}}")

#: What to do about it, by the system's error.
_ADVICE = {
    errno.ENOSPC: "free some space there, or choose another store",
    errno.EDQUOT: "free some space there, or choose another store",
    errno.EROFS: "choose a store that can be written to",
    errno.EACCES: "choose a store that you may write to",
    errno.EPERM: "choose a store that you may write to",
    errno.ENOTDIR: "a file is where a folder is needed; move it, or choose another store",
}


class _Lock(FileLock):
    """A lock that removes its file when it is released."""

    def _release(self) -> None:
        # Removed while it is held, so that nobody can remove the file of a later holder.
        with suppress(OSError):
            Path(self.lock_file).unlink()
        super()._release()


class StoreError(BezoarError):
    """The store cannot be used: the disk is full, or it may not be written."""


class Store:
    """Finished runs in a folder, which is made when something is first written.

    Args:
        path: the folder.

    Raises:
        UnknownFormatError: if a newer version of bezoar wrote the store.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.runs_folder = self.path / "runs"
        self.work_folder = self.path / "work"
        self.staging_folder = self.work_folder / "staging"
        self.locks_folder = self.work_folder / "locks"
        self.groups_folder = self.work_folder / "groups"
        self.broken_folder = self.work_folder / "broken"
        self._check_format()

    @classmethod
    def find(cls, path: str | Path) -> "Store":
        """The store that is at ``path`` or in its folder ``store``; there must be one."""
        for folder in (Path(path), Path(path) / "store"):
            if (folder / FORMAT_FILE).exists() or (folder / "runs").is_dir():
                return cls(folder)
        raise BezoarError(f"store: there is none at {path}; 'bezoar sweep' makes one")

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def __contains__(self, key: str) -> bool:
        """Whether a run is there. Whether it is undamaged, :meth:`is_finished` tells."""
        return (self.runs_folder / _checked(key)).is_dir()

    def is_finished(self, key: str) -> bool:
        """Whether a run is there, whole.

        Raises:
            UnknownFormatError: if a newer version wrote it.
        """
        return key in self and _is_whole(self.runs_folder / key)

    def load(self, wanted: str) -> StoredRun:
        """A finished run, by its key or the beginning of its key.

        Raises:
            BrokenRunError: if it is damaged.
            UnknownFormatError: if a newer version wrote it.
        """
        key = wanted if _KEY.fullmatch(wanted) else self.find_key(wanted)
        if key not in self:
            raise BezoarError(f"run: {key} is not in the store {self.path}")
        return read_run(self.runs_folder / key)

    def find_key(self, prefix: str) -> str:
        """The key that begins so, if there is just one."""
        if not _PREFIX.fullmatch(prefix):
            raise BezoarError(
                f"run: expected 4 to {DIGITS} hex digits of a run's key, found {prefix!r}"
            )
        found = [key for key in self.finished_keys() if key.startswith(prefix)]
        if len(found) > 1:
            raise BezoarError(f"run: {prefix!r} is the beginning of {', '.join(found)}; give more")
        if not found:
            raise BezoarError(f"run: no key in the store {self.path} begins with {prefix!r}")
        return found[0]

    def finished_keys(self) -> list[str]:
        """The keys of all finished runs, in their order."""
        try:
            return sorted(filter(_KEY.fullmatch, os.listdir(self.runs_folder)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"store: cannot read {self.path}: {error.strerror}") from error

    def runs(self, broken: Callable[[BezoarError], Any] | None = None) -> Iterator[StoredRun]:
        """Every finished run, by key.

        Args:
            broken: is told of runs that cannot be read, which are left out; without it the first
                one is an error.
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

        Args:
            key: its name.
            run: what it is, and what was measured.
            provenance: where, when and how it was computed.
            keep_models: whether its final models are kept, too.

        Raises:
            StoreError: if the disk is full or the store may not be written. Nothing is left.
        """
        with self.writing():
            token = f"{_checked(key)}-{secrets.token_hex(4)}"
            staging = self.staging_folder / token
            # The lock tells whoever clears up that somebody is still writing there.
            with self.lock(token):
                try:
                    staging.mkdir()
                    write_run(staging, key, run, provenance, keep_models)
                    self._move_in(staging, key)
                finally:
                    shutil.rmtree(staging, ignore_errors=True)
        return self.load(key)

    def group(
        self,
        keys: Collection[str],
        specs: Collection[dict[str, Any]],
        versions: Mapping[str, str] | None = None,
    ) -> Group:
        """A group of runs that are trained together; nothing is written.

        Args:
            keys: the keys of the runs, in the order in which they are trained.
            specs: their specs as documents, in the same order.
            versions: what computes them, so that :meth:`gc` can tell when nobody does any more.
        """
        return Group(self, tuple(keys), tuple(specs), versions)

    def begun_groups(self) -> "list[Group]":
        """The groups that are written down, whoever works on them; large ones first."""
        return list(begun_groups(self))

    def group_folder(self, keys: Collection[str]) -> Path:
        """The folder for the work on these runs together; not made here."""
        return self.groups_folder / digest("\n".join(sorted(keys)).encode())[:DIGITS]

    def lock(self, name: str) -> FileLock:
        """A lock between processes, which the system frees when a process dies."""
        return _Lock(self.locks_folder / f"{name}.lock", thread_local=False)

    def repair(self, key: str) -> Path | None:
        """Set a run aside if it is damaged, so that it counts as not finished.

        Returns:
            Where it was moved to; ``None`` if there was nothing to do.
        """
        folder = self.runs_folder / _checked(key)
        if _is_whole(folder):
            return None
        aside = self.broken_folder / f"{key}-{secrets.token_hex(4)}"
        # Looked at again under a lock: another process may just have repaired and replaced it.
        with self.writing(), self.lock(f"{key}-repair"):
            if _is_whole(folder):
                return None
            make_folder(self.broken_folder)
            os.rename(folder, aside)
            sync_folder(self.broken_folder)
            sync_folder(self.runs_folder)
        return aside

    def gc(self, outdated: Mapping[str, str] | None = None, dry_run: bool = False) -> list[Removal]:
        """Remove what nobody needs and nobody works on.

        That is: what a killed process left half-written, broken runs, and groups all of whose
        runs are finished.

        Args:
            outdated: if given, the versions of today; runs of others, and groups of others that
                nobody wrote to for a day, go too.
            dry_run: only tell.

        Returns:
            What was (or would be) removed.
        """
        return collect(self, outdated, dry_run)

    def _move_in(self, staging: Path, key: str) -> None:
        target = self.runs_folder / key
        self.repair(key)
        try:
            os.rename(staging, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and target.is_dir():
                return  # somebody was faster
            raise
        sync_folder(self.runs_folder)

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
        """For writing below the store: makes it if need be; explains what the system refuses.

        Raises:
            StoreError: for any error of the system.
            Timeout: as it is, if somebody else holds a lock that was asked for.
        """
        try:
            for folder in (self.runs_folder, self.staging_folder, self.locks_folder):
                make_folder(folder)
            if not (self.path / FORMAT_FILE).exists():
                content = json.dumps({"format": FORMAT, "what": "a store of bezoar runs"}) + "\n"
                write_whole(self.path / FORMAT_FILE, content.encode())
            yield
        except Timeout:
            raise  # an OSError, too; but somebody holds a lock, and nothing is wrong
        except OSError as error:
            advice = _ADVICE.get(error.errno or 0, "choose another store")
            raise StoreError(
                f"store: cannot write to {self.path}: {error.strerror or error}; {advice}"
            ) from error


def _checked(key: str) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise BezoarError(f"run: expected a key of {DIGITS} hex digits, found {key!r}")
    return key


def _is_whole(folder: Path) -> bool:
    """Whether there is nothing to set aside: no run, or one as it was written."""
    if not folder.is_dir():
        return True
    try:
        read_run(folder).verify()
    except BrokenRunError:
        return False
    return True
