"""Memory that is used again, because fresh memory costs more than most uses of it."""

import ctypes
import sys
import threading
from math import prod

import torch
from torch import Tensor

_kept = threading.local()

#: Settings of glibc's ``mallopt``: from what size on memory is the system's own affair, the most
#: that it allows; and how much free memory a thread keeps, the most that it can be told.
M_MMAP_THRESHOLD, M_TRIM_THRESHOLD = (-3, 32 << 20), (-1, 2**31 - 1)


def workspace(
    name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Memory of the calling thread for one purpose, with any content.

    It is valid until the thread next asks for the same name, type and device.
    """
    key = f"{name} {dtype} {device}"
    size = prod(shape)
    held: Tensor | None = getattr(_kept, key, None)
    if held is None or held.numel() < size:
        with torch.inference_mode(False):  # it may be written to in any mode
            held = torch.empty(size, dtype=dtype, device=device)
        setattr(_kept, key, held)
    return held[:size].view(shape)


def keep_freed_memory() -> None:
    """Let the process keep memory that it frees for its next use, where it can be told to.

    An iteration frees what the next one needs again. By default the C library gives much of it back
    to the system, which must clear it each time: in all threads but the first, and everywhere in
    processes that Dask starts. The size of all memory in use does not change.
    """
    if sys.platform != "linux":
        return
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    if tell is not None:
        for setting in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            tell(*setting)
