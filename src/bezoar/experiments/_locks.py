"""Locks between processes, which the system frees when a process dies."""

import os
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
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Its last holder may have removed the file after we opened it: then what we
                # locked guards nothing, and another process may hold a new file of that name.
                if _is_at(path, descriptor):
                    return cls(path, descriptor)
                os.close(descriptor)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise

    def release(self) -> None:
        """Free the lock and remove its file; a second time does nothing."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            # Removed while it is held, so that nobody can remove the file of a later holder.
            self.path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
