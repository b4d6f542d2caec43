"""Sorting a few inputs coordinate by coordinate, by whole-vector minima and maxima."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

#: Up to this many inputs a sorting network beats ``torch.sort``.
NETWORK_INPUTS = 32


def sort_ends(inputs: list[Tensor], ends: int) -> list[Tensor]:
    """Sort so far that the ``ends`` smallest and largest of each coordinate are in place.

    Args:
        inputs: tensors of one shape, free of NaN; they are overwritten.
        ends: how many ranks to sort at either end. Ranks between them come in any order.

    Returns:
        The tensors by rank.
    """
    if len(inputs) > NETWORK_INPUTS:
        return list(torch.stack(inputs).sort(0).values)
    pairs = comparisons(len(inputs), ends)
    if not pairs:
        return inputs
    spare = torch.empty_like(inputs[0])
    for lower, higher in pairs:
        torch.minimum(inputs[lower], inputs[higher], out=spare)
        torch.maximum(inputs[lower], inputs[higher], out=inputs[higher])
        inputs[lower], spare = spare, inputs[lower]
    return inputs


@cache
def comparisons(count: int, ends: int) -> Sequence[tuple[int, int]]:
    """The pairs of ranks to put in order, one pair after the other."""
    full = _batcher(count)
    return full if 2 * ends >= count - 1 else min(tuple(_ends(count, ends)), full, key=len)


def _ends(count: int, ends: int) -> Iterator[tuple[int, int]]:
    """Sweeps, each of which brings one extreme to its end."""
    for done in range(ends):
        ranks = range(done, count - done)
        lower, higher = [*ranks[:-1]], [*ranks]
        if done == 0:
            # Of two values that were compared, only one may be the lowest, the other the highest.
            yield from zip(ranks[::2], ranks[1::2], strict=False)
            lower = sorted({*ranks[:-1:2], ranks[-2]})
            higher = sorted({*ranks[1::2], ranks[-1]})
        yield from pairwise(higher)
        yield from reversed([*pairwise(lower)])


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
