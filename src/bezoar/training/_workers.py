"""Threads that share the work of a step."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import torch

from bezoar._checks import whole
from bezoar._workspace import keep_freed_memory

#: Pieces are done one after the other only if that takes less than this share of the time. The
#: choice decides last bits, so it must not depend on chance where both are about as fast.
CLEARLY = 0.8

#: Each of the two ways is timed this often, or for this many seconds, but at least twice.
ROUNDS, SECONDS = 8, 1.0

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one_thread() -> None:
    """Torch at one thread in this thread, for good."""
    torch.get_num_threads()  # a thread takes over the process's number when it first asks
    torch.set_num_threads(1)


@contextmanager
def torch_at(threads: int) -> Iterator[None]:
    """Torch at this many threads in the calling thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Workers:
    """Threads that run one piece of a step each, the caller's among them, with torch at one thread.

    Splitting a step between whole pieces (agents, rules) loses less to waiting than splitting
    every operation, and a piece is computed in the same way by every thread: results do not
    depend on the number of workers, to the last bit.

    From then on the process keeps memory that it frees; see :func:`keep_freed_memory`.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = available_cores() if count is None else whole("workers", count, 1)
        keep_freed_memory()
        # The calling thread works too: it is awake, and the data is in its cache.
        self._others = ThreadPoolExecutor(max(1, self.count - 1), "bezoar", initializer=_one_thread)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``work`` on every item, results in order; if there are errors, one of them is raised."""
        pieces = list(items)
        results: dict[int, Result] = {}
        left = iter(enumerate(pieces))
        mode = torch.is_inference_mode_enabled()

        def take() -> None:
            try:
                with torch.inference_mode(mode):
                    for place, piece in left:
                        results[place] = work(piece)
            finally:  # after an error the rest is left
                deque(left, maxlen=0)

        with self.alone():
            helpers = min(self.count, len(pieces)) - 1
            others = [self._others.submit(take) for _ in range(helpers)]
            try:
                take()
            finally:
                # Threads that have not started yet have no work left.
                begun = [other for other in others if not other.cancel()]
                wait(begun)
        for other in begun:
            other.result()
        return [results[place] for place in range(len(pieces))]

    def alone(self) -> AbstractContextManager[None]:
        """Torch at one thread in the calling thread too, for small operations between the pieces.

        They gain nothing from more threads, and must not depend on their number either.
        """
        return torch_at(1)

    def fastest_threads(self, work: Callable[[int], Any], pieces: int) -> int:
        """How many threads to give to every operation of some pieces of work, found by trying.

        It is 1 where pieces, known by their numbers, are best done side by side, each on one
        thread; and the number of workers where they are best done one after the other.
        """
        if self.count == 1:
            return 1
        together = min(self.count, pieces)
        side_by_side = _seconds(lambda: self.map(work, range(together)))
        with torch_at(self.count):
            in_turn = _seconds(lambda: work(0))
        rounds = -(-pieces // together)
        return self.count if in_turn * pieces < CLEARLY * side_by_side * rounds else 1

    def close(self) -> None:
        """End the threads."""
        self._others.shutdown()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _seconds(work: Callable[[], Any]) -> float:
    """The least time of a few rounds."""
    found: list[float] = []
    while len(found) < 2 or (len(found) < ROUNDS and sum(found) < SECONDS):
        before = time.perf_counter()
        work()
        found.append(time.perf_counter() - before)
    return min(found)
