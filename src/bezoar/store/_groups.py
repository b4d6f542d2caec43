"""Groups of runs under way: what is trained together and how far it is.

How runs are grouped decides last bits. So a group that was begun is written down, and whoever goes
on with it after its process has died trains the same runs together, in the same order.

In a folder of the store's ``work/groups``, named by a hash of the runs' keys:

    group.json                which runs, in their order
    checkpoint.safetensors    where their training stands
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezoar._files import digest, write_whole
from bezoar._lock import Lock
from bezoar.store._stored_run import DIGITS

if TYPE_CHECKING:
    from bezoar.store._store import Store

GROUP_FILE = "group.json"

#: The version of group files that this code writes and reads.
FORMAT = 2


@dataclass(frozen=True)
class Group:
    """Runs that are trained together.

    Attributes:
        store: where they will be kept.
        keys: their keys in the store, in the order in which they are trained.
        specs: their specs as documents, in the same order.
        versions: what computes them, where that is known.
        base: the folder that relative paths in the specs are relative to.
        apart: whether training them together has failed, so that each is trained alone.
    """

    store: "Store"
    keys: tuple[str, ...]
    specs: tuple[dict[str, Any], ...]
    versions: Mapping[str, str] | None
    base: Path
    apart: bool = False

    @property
    def folder(self) -> Path:
        """Where the work on it is kept."""
        name = digest("\n".join(sorted(self.keys)).encode())[:DIGITS]
        return self.store.groups_folder / name

    @property
    def checkpoint_file(self) -> Path:
        """Where its checkpoint is, if there is one."""
        return self.folder / "checkpoint.safetensors"

    def lock(self) -> Lock:
        """The lock that whoever trains the group holds; it is not yet taken."""
        return self.store.lock(self.folder.name)

    def write(self) -> None:
        """Write down which runs these are."""
        content = {
            "format": FORMAT,
            "apart": self.apart,
            "versions": self.versions,
            "base": str(self.base),
            "keys": self.keys,
            "specs": self.specs,
        }
        with self.store.writing():
            write_whole(self.folder / GROUP_FILE, (json.dumps(content, indent=2) + "\n").encode())

    def take_apart(self) -> "Group":
        """Write down that its runs are to be trained one by one; its checkpoint is dropped."""
        group = replace(self, apart=True)
        group.write()
        with self.store.writing():
            self.checkpoint_file.unlink(missing_ok=True)
        return group

    def remove(self) -> None:
        """Remove its folder, when its runs are stored or have failed."""
        with suppress(FileNotFoundError):  # somebody else may be clearing up, too
            # The group file goes last: it says what everything else in the folder belongs to.
            for path in sorted(self.folder.iterdir(), key=lambda path: path.name == GROUP_FILE):
                path.unlink(missing_ok=True)
            self.folder.rmdir()


def read_group(store: "Store", folder: Path) -> Group | None:
    """The group that is written down in a folder; ``None`` if it cannot be read."""
    try:
        told = json.loads((folder / GROUP_FILE).read_bytes())
        if told["format"] != FORMAT:
            return None
        keys, specs = tuple(map(str, told["keys"])), tuple(map(dict, told["specs"]))
        base = Path(told.get("base", ""))  # groups begun by earlier versions have none
        group = Group(store, keys, specs, told.get("versions"), base, bool(told["apart"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None  # not begun, just removed, or of another version; 'bezoar runs gc' clears up
    return group if keys and len(keys) == len(specs) and group.folder == folder else None
