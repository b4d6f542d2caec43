"""Memory that a thread uses again, because fresh memory costs more than most uses of it."""

import threading
from math import prod

import torch
from torch import Tensor

_kept = threading.local()


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
