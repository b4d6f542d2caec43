"""Sorting a few inputs coordinate by coordinate, by whole-vector minima and maxima."""

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

#: Up to this many inputs a sorting network beats ``torch.sort``.
NETWORK_INPUTS = 32


def sort_ends(inputs: list[Tensor], low: int, high: int) -> list[Tensor]:
    """Sort so far that the ``low`` smallest and ``high`` largest of each coordinate are in place.

    Args:
        inputs: tensors of one shape, free of NaN; they are overwritten.
        low: how many ranks to sort from the smallest on.
        high: how many from the largest on. Ranks between them come in any order.

    Returns:
        The tensors by rank.
    """
    count = len(inputs)
    if count < 2:
        return inputs
    if count > NETWORK_INPUTS:
        return list(torch.stack(inputs).sort(0).values)
    # A sweep that brings one extreme to its end takes as many exchanges as inputs are left.
    sweeps = low * count + high * count - (low + high) * (low + high + 1) // 2
    full = _batcher(count)
    pairs = (
        iter(full) if low + high >= count - 1 or sweeps >= len(full) else _ends(count, low, high)
    )
    spare = torch.empty_like(inputs[0])
    for lower, higher in pairs:
        torch.minimum(inputs[lower], inputs[higher], out=spare)
        torch.maximum(inputs[lower], inputs[higher], out=inputs[higher])
        inputs[lower], spare = spare, inputs[lower]
    return inputs


def _ends(count: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    for done in range(high):
        for rank in range(count - 1 - done):
            yield rank, rank + 1
    for done in range(low):
        for rank in range(count - 1 - high, done, -1):
            yield rank - 1, rank


@cache
def _batcher(count: int) -> tuple[tuple[int, int], ...]:
    """Batcher's odd-even merge sort: the pairs to put in order."""
    pairs = []
    p = 1
    while p < count:
        k = p
        while k >= 1:
            for j in range(k % p, count - k, 2 * k):
                for i in range(min(k, count - j - k)):
                    if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                        pairs.append((i + j, i + j + k))
            k //= 2
        p *= 2
    return tuple(pairs)
