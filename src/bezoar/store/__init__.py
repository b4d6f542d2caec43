"""Finished runs on disk, and groups of runs under way.

Here belongs what is written and read, whole or not at all: the layout of the folders, checksums,
locks between processes, and clearing up. What a run is (its spec, its key, how it is trained) is
decided in :mod:`bezoar.experiments`; the store sees a key and a document. Nothing here needs torch.
"""

from bezoar.store._gc import Removal
from bezoar.store._groups import Group
from bezoar.store._store import Store, StoreError
from bezoar.store._stored_run import (
    AGENT,
    AGENTS,
    DIGITS,
    HEARD,
    ITERATION,
    LISTENING,
    BrokenRunError,
    Finished,
    StoredRun,
    UnknownFormatError,
    parquet_bytes,
)

__all__ = [
    "AGENT",
    "AGENTS",
    "DIGITS",
    "HEARD",
    "ITERATION",
    "LISTENING",
    "BrokenRunError",
    "Finished",
    "Group",
    "Removal",
    "Store",
    "StoreError",
    "StoredRun",
    "UnknownFormatError",
    "parquet_bytes",
]
