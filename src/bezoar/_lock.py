"""Locks between processes."""

from contextlib import suppress
from pathlib import Path

from filelock import FileLock


class Lock(FileLock):
    """A lock that removes its file when it is released."""

    def _release(self) -> None:
        # Removed while it is held, so that nobody can remove the file of a later holder.
        with suppress(OSError):
            Path(self.lock_file).unlink()
        super()._release()
