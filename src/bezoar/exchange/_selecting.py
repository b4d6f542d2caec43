"""Middle values of many overlapping sets of inputs, by sorting all inputs once.

On a dense network a neighbourhood lacks few of all inputs. Where all inputs are sorted, coordinate
by coordinate, the values of its ranks are not far from those of the same ranks of all, and follow
from a comparison with what it lacks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bezoar.exchange._sorting import comparisons
from bezoar.exchange._trimming import Program, Writer

#: Integers of as many bytes.
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Selection:
    """Sums of the values of some ranks of each set.

    Attributes:
        sort: gives the values that may have these ranks, in order.
        lacking: the inputs that each set lacks.
        kept: the number of ranks.
    """

    sort: Program
    lacking: Sequence[Sequence[int]]
    kept: int

    @property
    def working(self) -> int:
        """The number of rows of working memory."""
        return self.sort.inputs + self.sort.working + max(map(len, self.lacking)) + self.kept

    @property
    def cost(self) -> int:
        """The number of operations on rows."""
        choices = sum(
            3 * (len(inputs) - done + self.kept - 1)
            for inputs in self.lacking
            for done in range(len(inputs))
        )
        more = self.sort.inputs + (self.kept - 1) * len(self.lacking)
        return self.sort.cost + choices + more

    def run(self, values: Sequence[Tensor], memory: Sequence[Tensor]) -> Iterator[Tensor]:
        """Compute the sums, each of which is valid until the next is asked for.

        Args:
            values: the inputs, which are left alone.
            memory: rows like the inputs.
        """
        rows = iter(memory)
        # Equal numbers must have equal bits, so zero must not be negative.
        values = [torch.add(value, 0.0, out=next(rows)) for value in values]
        ordered = self.sort.run(values, [next(rows) for _ in range(self.sort.working)])
        held, *spare = rows
        for inputs in self.lacking:
            window = ordered[: len(inputs) + self.kept]
            for gone in inputs:
                for rank, into in zip(range(len(window) - 1), spare, strict=False):
                    _other(values[gone], window[rank], window[rank + 1], held, into)
                    window[rank] = into
                window.pop()
            total, *more = window
            for value in more:
                total = torch.add(total, value, out=held)
            yield total


def _other(gone: Tensor, low: Tensor, high: Tensor, held: Tensor, into: Tensor) -> None:
    """Write the value of a rank without one value: the rank's own, or the next higher one.

    The value that goes is not between the two. Bits are compared, as choosing by a mask takes ten
    times as long.

    Args:
        gone: the value that goes.
        low: the value of the rank.
        high: the value of the next rank; this is chosen where ``gone`` is not above ``low``.
        held: memory for what is between.
        into: where to write; it may be ``low``.
    """
    bits = _BITS[low.dtype.itemsize]
    torch.clamp(gone, low, high, out=held)
    for each, to in ((low, held), (high, into)):
        torch.bitwise_xor(held.view(bits), each.view(bits), out=to.view(bits))


def selected_sums(sets: Sequence[Iterable[int]], inputs: int, ranks: range) -> Selection:
    """How to add up the values of the same ranks in each set.

    Args:
        sets: the inputs in each set.
        inputs: the number of inputs.
        ranks: which ranks, from the lowest value.
    """
    lacking = [sorted(set(range(inputs)).difference(members)) for members in sets]
    writer = Writer(inputs)
    ordered = list(range(inputs))
    for low, high in comparisons(inputs, inputs):
        pair = ordered[low], ordered[high]
        ordered[low], ordered[high] = (
            writer.write("minimum", *pair),
            writer.write("maximum", *pair),
        )
    most = max(map(len, lacking))
    return Selection(writer.program(ordered[ranks.start : ranks.stop + most]), lacking, len(ranks))
