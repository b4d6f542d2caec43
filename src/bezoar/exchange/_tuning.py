"""How an exchange is computed: sizes that decide its speed, and nothing but last bits else."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: Like the builtin ``map``, perhaps over several threads.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


#: Long messages are cut into a multiple of so many pieces, which 2, 4 or so many threads can share
#: evenly.
THREADS = 8

#: Pieces begin at a multiple of so many numbers: a line of the cache, whatever their type.
LINE = 64


@dataclass(frozen=True)
class Tuning:
    """Sizes by which the work is cut up.

    Attributes:
        dense_advantage: a network is treated as dense if it has at most this many times as many
            pairs of agents as inputs: one product over all pairs is so much faster than gathering.
        piece_bytes: messages gathered in one piece of work.
        block_bytes: copies of messages held at a time, so that they stay in the cache.
        matrix_bytes: matrices of neighbourhoods held at a time on a dense network.
        columns: coordinates multiplied at a time.
        exact_sums: rules by coordinates add up messages of at most this length in float64, so that
            their models are rounded once. Longer ones are added up in their own type: that is
            twice as fast.
        long: messages beyond this length are cut into pieces of about this length at most. Pieces
            are added up in order, so that results do not depend on the threads.
        compiled: whether rules by coordinates are compiled where messages are in the processor's
            memory.
        ask_late: whether the host asks the device only once, at the end of an exchange, if
            something needs care, instead of at every step; by default not on the CPU.
    """

    dense_advantage: float = 16
    piece_bytes: int = 16 << 20
    block_bytes: int = 2 << 20
    matrix_bytes: int = 64 << 20
    columns: int = 8192
    exact_sums: int = 1 << 17
    long: int = 1 << 18
    compiled: bool = True
    ask_late: bool | None = None

    def spans(self, length: int) -> list[slice]:
        """The pieces of a message of this length: one, or a multiple of :data:`THREADS`."""
        size = length
        if length > self.long:
            size = -(-length // (THREADS * -(-length // (THREADS * self.long))))
            size += -size % LINE
        return [slice(start, min(start + size, length)) for start in range(0, length, size)]


DEFAULT = Tuning()


def side_by_side(most: int, *numbers: Sequence[int]) -> list[list[int]]:
    """Places at which all these numbers follow each other, at most so many together.

    >>> side_by_side(3, [4, 0, 5, 1, 2, 3])
    [[1, 3, 4], [5, 0, 2]]
    """
    found: list[list[int]] = []
    for place in sorted(range(len(numbers[0])), key=numbers[0].__getitem__):
        if found and len(found[-1]) < most:
            last = found[-1][-1]
            if all(each[last] + 1 == each[place] for each in numbers):
                found[-1].append(place)
                continue
        found.append([place])
    return found
