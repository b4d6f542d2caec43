"""Groups of runs under way: what is trained together and how far it is, in a folder of the store.

How runs are grouped decides last bits. So a group that was begun is written down, and whoever goes
on with it after its process has died trains the same runs together, in the same order.

In the store's ``groups_folder``:

    <hash of the keys>/group.json                which runs, in their order
    <hash of the keys>/checkpoint.safetensors    where their training stands
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bezoar._files import write_whole
from bezoar.experiments._gc import GROUP_FILE
from bezoar.experiments._identity import run_key, spec_document
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._store import Store
from bezoar.training import Checkpoint, CheckpointError

CHECKPOINT_FILE = "checkpoint.safetensors"

#: The version of group files that this code writes and reads.
FORMAT = 1


@dataclass(frozen=True)
class Group:
    """Runs that are trained together.

    Attributes:
        store: where they will be kept.
        specs: what they are.
        keys: their keys in the store, in the same order.
        apart: whether training them together has failed, so that each is trained alone.
    """

    store: Store
    specs: tuple[RunSpec, ...]
    keys: tuple[str, ...]
    apart: bool = False

    @classmethod
    def of(cls, store: Store, runs: Sequence[tuple[str, RunSpec]]) -> "Group":
        """A group of runs, by key and spec, that is not yet begun."""
        # As they will be read back: 1.0 is written as 1, and one training must not begin with
        # the one and go on with the other.
        specs = tuple(RunSpec.recall(spec_document(spec)) for _, spec in runs)
        return cls(store, specs, tuple(key for key, _ in runs))

    @property
    def folder(self) -> Path:
        """Where the work on it is kept."""
        return self.store.group_folder(self.keys)

    def write(self) -> None:
        """Write down which runs these are.

        Raises:
            StoreError: where the store cannot be written.
        """
        documents = [spec_document(spec) for spec in self.specs]
        content = {"format": FORMAT, "apart": self.apart, "specs": documents}
        with self.store.writing():
            write_whole(self.folder / GROUP_FILE, (json.dumps(content, indent=2) + "\n").encode())

    def take_apart(self) -> "Group":
        """Write down that its runs do not train together; what they reached is dropped."""
        group = replace(self, apart=True)
        group.write()
        with self.store.writing():
            (self.folder / CHECKPOINT_FILE).unlink(missing_ok=True)
        return group

    def checkpoint(self) -> Checkpoint | None:
        """Where its training stood when it was last written, if it was.

        Raises:
            CheckpointError: where that cannot be read any more.
        """
        try:
            return Checkpoint.load(self.folder / CHECKPOINT_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(
                f"checkpoint: {self.folder / CHECKPOINT_FILE} cannot be read: {error.strerror}"
            ) from None

    def keep(self, checkpoint: Checkpoint) -> None:
        """Write where its training stands.

        Raises:
            StoreError: where the store cannot be written; what was there before remains.
        """
        with self.store.writing():
            checkpoint.save(self.folder / CHECKPOINT_FILE)

    def remove(self) -> None:
        """Remove its folder: its runs are kept, or will never be."""
        with suppress(FileNotFoundError):  # somebody else may be clearing up, too
            # What says that the folder is a group goes last: it must not go on without it.
            for path in sorted(self.folder.iterdir(), key=lambda path: path.name == GROUP_FILE):
                path.unlink(missing_ok=True)
            self.folder.rmdir()


def begun_groups(store: Store) -> list[Group]:
    """The groups that are written down in a store, whoever works on them; large ones first.

    Those of other versions, whose runs no spec can ask for any more, are left out.
    """
    try:
        names = sorted(os.listdir(store.groups_folder))
    except FileNotFoundError:
        return []
    found = [_read(store, store.groups_folder / name) for name in names]
    # A group that was taken apart contains those of its single runs, and must come before them.
    return sorted(filter(None, found), key=lambda group: -len(group.specs))


def _read(store: Store, folder: Path) -> Group | None:
    try:
        document = json.loads((folder / GROUP_FILE).read_bytes())
        if document["format"] != FORMAT:
            return None
        specs = tuple(RunSpec.recall(spec) for spec in document["specs"])
        keys = tuple(run_key(spec) for spec in specs)
        apart = bool(document["apart"])
    except (OSError, ValueError, LookupError, TypeError):
        return None  # not begun, just removed, or of another version; 'bezoar runs gc' clears up
    group = Group(store, specs, keys, apart)
    return group if keys and group.folder == folder else None
