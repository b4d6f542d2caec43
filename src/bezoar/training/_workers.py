"""Threads that share the work of a step."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import torch

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
def _torch_at(threads: int) -> Iterator[None]:
    """Torch at so many threads in the calling thread."""
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
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or available_cores()
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

    def one_by_one(
        self, work: Callable[[Item], Result], items: Iterable[Item], threads: int
    ) -> list[Result]:
        """``work`` on every item in the calling thread, with torch at so many threads."""
        with _torch_at(threads):
            return [work(item) for item in items]

    def alone(self) -> AbstractContextManager[None]:
        """Torch at one thread in the calling thread too, for small operations between the pieces.

        They gain nothing from more threads, and must not depend on their number either.
        """
        return _torch_at(1)

    def close(self) -> None:
        """End the threads."""
        self._others.shutdown()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
