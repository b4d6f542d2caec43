"""Threads that share the work of a step."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Threads that run one piece of a step each, with torch at one thread inside.

    Splitting a step between whole pieces (agents, rules) loses less to waiting than splitting
    every operation, and a piece is computed in the same way whoever does it: results do not
    depend on the number of workers, to the last bit.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or available_cores()
        self._pool = ThreadPoolExecutor(
            self.count, "bezoar", initializer=torch.set_num_threads, initargs=(1,)
        )

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``work`` on every item, results in order; the first error is raised."""
        return list(self._pool.map(work, items))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Torch at one thread in the calling thread too, for small operations between the pieces.

        They gain nothing from more threads, and must not depend on their number either.
        """
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
