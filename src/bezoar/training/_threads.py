"""How many threads an operation takes: what is fastest depends on the model and the machine."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bezoar.training._workers import Workers

#: Agents are computed one after the other only if that takes less than this share of the time:
#: where both are about as fast, the choice, and with it last bits, must not be left to chance.
CLEARLY = 0.8

#: Either is timed so often, or for so many seconds, but twice at least.
ROUNDS, SECONDS = 8, 1.0


def fastest_threads(workers: Workers, work: Callable[[int], Any], pieces: int) -> int:
    """How many threads to give to every operation of some pieces of work, found by trying.

    Args:
        workers: the threads there are.
        work: does one piece, known by its number.
        pieces: how many there are.

    Returns:
        1 where pieces are best done side by side, each on one thread; the number of workers where
        they are best done one after the other.
    """
    if workers.count == 1:
        return 1
    together = min(workers.count, pieces)
    side_by_side = _seconds(partial(workers.map, work, range(together)))
    in_turn = _seconds(partial(workers.one_by_one, work, range(1), workers.count))
    rounds = -(-pieces // together)
    return workers.count if in_turn * pieces < CLEARLY * side_by_side * rounds else 1


def _seconds(work: Callable[[], Any]) -> float:
    """The least time of a few rounds."""
    found: list[float] = []
    while len(found) < 2 or (len(found) < ROUNDS and sum(found) < SECONDS):
        before = time.perf_counter()
        work()
        found.append(time.perf_counter() - before)
    return min(found)
