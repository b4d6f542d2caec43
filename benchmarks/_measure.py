"""How everything here is measured: repeated, interleaved, by medians.

These machines are shared. What is compared is therefore measured in turns within one process, so
that a noisy neighbour slows both sides, and the median over the turns decides.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from bezoar.training import Workers


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        what: what was measured against what.
        found: the figure.
        limit: what it should not exceed; ``None`` where it is only told.
        unit: of the figure.
        detail: what lies behind it.
    """

    what: str
    found: float
    limit: float | None = None
    unit: str = ""
    detail: str = ""

    @property
    def holds(self) -> bool:
        """Whether the figure is within its limit."""
        return self.limit is None or self.found <= self.limit


@dataclass(frozen=True)
class Result:
    """What a benchmark found."""

    name: str
    about: str
    rows: list[Row] = field(default_factory=list)


def interleaved(
    sides: Mapping[str, Callable[[], Any]], rounds: int = 9, warm: int = 2
) -> dict[str, list[float]]:
    """Seconds of each side, measured in turns."""
    for _ in range(warm):
        for work in sides.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        order = list(sides.items())
        for name, work in order if turn % 2 == 0 else reversed(order):
            before = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - before)
    return seconds


def mover(size: int, workers: Workers) -> Callable[[], None]:
    """Copies so many bytes from memory to memory, with all workers: the memory's speed."""
    count = size // 4
    source, target = torch.ones(count), torch.empty(count)
    share = -(-count // (4 * workers.count))

    def copy(start: int) -> None:
        target[start : start + share].copy_(source[start : start + share])

    def work() -> None:
        workers.map(copy, range(0, count, share))

    return work


def sum_ratio(seconds: Mapping[str, list[float]], above: str, below: Sequence[str]) -> float:
    """The median over the turns of one side's time over the sum of others' in the same turn."""
    sums = [sum(turn) for turn in zip(*(seconds[name] for name in below), strict=True)]
    ratios = [a / b for a, b in zip(seconds[above], sums, strict=True)]
    return float(statistics.median(ratios))


def tell(what: str) -> None:
    """Say on a terminal what is being measured; a moving bar would be measured too."""
    if sys.stderr.isatty():
        print(f"… {what}", file=sys.stderr)


def ratio(seconds: Mapping[str, list[float]], above: str, below: str) -> float:
    """The median over the turns of one side's time over the other's in the same turn."""
    pairs = zip(seconds[above], seconds[below], strict=True)
    return statistics.median(a / b for a, b in pairs)


def milliseconds(seconds: list[float]) -> float:
    """The median in milliseconds."""
    return 1000 * statistics.median(seconds)
