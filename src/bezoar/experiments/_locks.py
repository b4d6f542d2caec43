"""Locks between processes, which the system frees when a process dies."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


class Lock:
    """A lock that is held until it is released or the process ends.

    Taken with :meth:`take`. Use it in a ``with`` statement, or call :meth:`release`.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> "Lock | None":
        """Take the lock with this file, or ``None`` if somebody holds it; never waits."""
        import fcntl  # systems without it can still read a store

        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            taken = False
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Its last holder may have removed the file after we opened it: then what we
                # locked guards nothing, and another process may hold a new file of that name.
                taken = _is_at(path, descriptor)
                if taken:
                    return cls(path, descriptor)
            except BlockingIOError:
                return None
            finally:
                if not taken:
                    os.close(descriptor)

    @classmethod
    def wait(cls, path: Path) -> "Lock":
        """Take a lock that is only ever held for moments."""
        while (lock := cls.take(path)) is None:
            time.sleep(0.01)
        return lock

    @staticmethod
    def is_held(path: Path) -> bool:
        """Whether somebody holds the lock with this file; writes nothing."""
        import fcntl

        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Free the lock and remove its file; a second time does nothing."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        # Removed while it is held, so that nobody can remove the file of a later holder. One that
        # cannot be removed does no harm.
        with suppress(OSError):
            self.path.unlink()
        os.close(descriptor)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(frozen=True)
class Claim:
    """The right to compute a run, held until it is released or the process ends.

    Attributes:
        key: the run's name.
    """

    key: str
    _lock: Lock

    def release(self) -> None:
        """Let others claim the run; a second time does nothing."""
        self._lock.release()

    def __enter__(self) -> "Claim":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
