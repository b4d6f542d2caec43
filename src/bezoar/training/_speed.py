"""How fast this machine is at what training consists of."""

import statistics
import time
from typing import Any

import torch

from bezoar.training._workers import Workers

#: The shape of a step's matrix products: rows (classes of all runs), width, samples.
PRODUCT = (320, 800, 1024)


def product_speed(workers: int | None = None, products: int = 20, rounds: int = 6) -> float:
    """Floating-point operations a second in float32 products like those of a step.

    Args:
        workers: how many threads, all multiplying at once; by default one a core.
        products: how many each does in a round.
        rounds: how many to take the median of, after one that does not count.
    """
    rows, width, samples = PRODUCT
    left, right = torch.rand(rows, width), torch.rand(width, samples)

    def multiply(_: Any) -> None:
        for _ in range(products):
            left @ right

    times = []
    with Workers(workers) as pool:
        for _ in range(1 + rounds):
            before = time.perf_counter()
            pool.map(multiply, range(pool.count))
            times.append(time.perf_counter() - before)
        operations = products * 2 * rows * width * samples * pool.count
    return operations / statistics.median(times[1:])
