"""Trimmed sums of many overlapping sets of inputs, with shared parts computed once.

On a dense network the agents' neighbourhoods differ by few inputs. Of a set of inputs it is enough
to know, coordinate by coordinate, its ``q`` lowest values, its ``q`` highest values, and the sum
of the rest; two disjoint sets are merged by moving what is no longer outermost to the sum. Only
values that are kept are ever added up, so nothing cancels, however large the outermost ones are.

Which sets to merge is found once for a network and written down as a list of operations on rows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor

#: Looking for common parts takes longer the more agents there are, and pays where they are few.
MOST_AGENTS = 64

Kind = Literal["minimum", "maximum", "add"]

_FUNCTIONS: dict[Kind, Callable[..., Tensor]] = {
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "add": torch.add,
}


@dataclass(frozen=True)
class Program:
    """Operations on rows: the inputs come first, then rows of working memory.

    Attributes:
        inputs: the number of inputs.
        working: the number of rows of working memory.
        operations: what to do in turn: the kind, two rows to read, and the row to write.
        results: the row that holds each result in the end.
    """

    inputs: int
    working: int
    operations: Sequence[tuple[Kind, int, int, int]]
    results: Sequence[int]

    @property
    def cost(self) -> int:
        """The number of operations on rows."""
        return len(self.operations)

    def run(self, values: Sequence[Tensor], memory: Sequence[Tensor]) -> list[Tensor]:
        """Compute the results.

        Args:
            values: the inputs, which are left alone.
            memory: rows like the inputs, in which the results will lie.
        """
        rows = [*values, *memory]
        for kind, first, second, to in self.operations:
            _FUNCTIONS[kind](rows[first], rows[second], out=rows[to])
        return [rows[place] for place in self.results]


def trimmed_sums(sets: Sequence[Iterable[int]], inputs: int, dropped: int) -> Program:
    """A program for the sum of each set's values without the outermost, coordinate by coordinate.

    Args:
        sets: the inputs in each set, more than ``2 · dropped``, and two at least.
        inputs: the number of inputs.
        dropped: how many values to leave out at either end.
    """
    merges, wanted = plan(sets, inputs)
    writer = Writer(inputs)
    parts = [_Part([value]) for value in range(inputs)]
    for first, second in merges:
        parts.append(writer.merge(parts[first], parts[second], dropped))
    return writer.program([parts[number].rest[0] for number in wanted])


def plan(sets: Sequence[Iterable[int]], inputs: int) -> tuple[list[tuple[int, int]], list[int]]:
    """How to build sets by merging, the most common pairs first.

    Args:
        sets: the inputs in each wanted set.
        inputs: the number of inputs.

    Returns:
        Pairs of sets to be merged in turn, and the number of each wanted set. Sets are numbered:
        the inputs first, then the results of the merges.
    """
    left = [set(members) for members in sets]
    merges: list[tuple[int, int]] = []
    while True:
        pairs = Counter(pair for members in left for pair in combinations(sorted(members), 2))
        if not pairs:
            return merges, [min(members) for members in left]
        common = max(pairs.values())
        # Small parts first: they are the cheapest to merge, and fit into more sets.
        pair = min((pair for pair, count in pairs.items() if count == common), key=max)
        for members in left:
            if members.issuperset(pair):
                members.difference_update(pair)
                members.add(inputs + len(merges))
        merges.append(pair)


@dataclass(frozen=True)
class _Part:
    """What is known of a set of inputs: its few values, or its lowest, its highest and the rest.

    Values are known by their numbers: first come the inputs, then the results of operations.
    """

    values: Sequence[int] = ()
    low: Sequence[int] = ()
    high: Sequence[int] = ()
    rest: Sequence[int] = ()


class Writer:
    """Writes operations, each of which makes a new value."""

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._operations: list[tuple[Kind, int, int]] = []

    def merge(self, first: _Part, second: _Part, dropped: int) -> _Part:
        """What is known of the union of two disjoint sets."""
        values = [*first.values, *second.values]
        rests = [*first.rest, *second.rest]
        if len(values) < 2 * dropped and not first.low and not second.low:
            return _Part(values)
        low, over = self._ends([*first.low, *second.low, *values], dropped, "minimum", "maximum")
        high = [*first.high, *second.high]
        if values:  # what is not among the lowest may be among the highest
            high, over = self._ends([*high, *over], dropped, "maximum", "minimum")
        else:
            high, more = self._ends(high, dropped, "maximum", "minimum")
            over = [*over, *more]
        rests += over
        while len(rests) > 1:
            rests = [self.write("add", *rests[:2]), *rests[2:]]
        return _Part([], low, high, rests)

    def _ends(
        self, values: list[int], count: int, wins: Kind, loses: Kind
    ) -> tuple[list[int], list[int]]:
        """The ``count`` outermost values, coordinate by coordinate, and the others."""
        ends: list[int] = []
        while len(ends) < count and values:
            end, *values = values
            for place, value in enumerate(values):
                values[place] = self.write(loses, end, value)
                end = self.write(wins, end, value)
            ends.append(end)
        return ends, values

    def write(self, kind: Kind, first: int, second: int) -> int:
        """Write an operation on two values; returns the number of the new one."""
        self._operations.append((kind, first, second))
        return self._inputs + len(self._operations) - 1

    def program(self, results: Sequence[int]) -> Program:
        """The operations that the results need, in as few rows of memory as they take."""
        last: dict[int, int] = dict.fromkeys(results, len(self._operations))
        for place in reversed(range(len(self._operations))):
            if self._inputs + place in last:
                for value in self._operations[place][1:]:
                    last.setdefault(value, place)
        row = {value: value for value in range(self._inputs)}
        free: list[int] = []
        working = 0
        operations: list[tuple[Kind, int, int, int]] = []
        for place, (kind, first, second) in enumerate(self._operations):
            made = self._inputs + place
            if made not in last:
                continue
            free += [row[v] for v in {first, second} if v >= self._inputs and last[v] == place]
            if not free:
                free.append(self._inputs + working)
                working += 1
            row[made] = free.pop()
            operations.append((kind, row[first], row[second], row[made]))
        return Program(self._inputs, working, operations, [row[value] for value in results])
