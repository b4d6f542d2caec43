"""How fast this machine multiplies matrices, and how many operations a training takes."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch

from bezoar._products import linear
from bezoar.training._metrics import METRICS
from bezoar.training._task import Cost
from bezoar.training._workers import Workers

#: The shape of a step's matrix products: rows (classes of all runs), width, samples.
PRODUCT = (320, 800, 1024)


def product_speed(workers: int | None = None, products: int = 20, rounds: int = 6) -> float:
    """Floating-point operations a second in float32 products like those of a step.

    All workers, by default one a core, multiply at once. It is the median of some rounds of so many
    products, after one round that does not count.
    """
    rows, width, samples = PRODUCT
    left, right = torch.rand(rows, width), torch.rand(samples, width)

    def multiply(_: Any) -> None:
        for _ in range(products):
            linear(left, right)

    times = []
    with Workers(workers) as pool:
        for _ in range(1 + rounds):
            before = time.perf_counter()
            pool.map(multiply, range(pool.count))
            times.append(time.perf_counter() - before)
        operations = products * 2 * rows * width * samples * pool.count
    return operations / statistics.median(times[1:])


def operations(
    cost: Cost, iterations: int, every: int, metrics: Sequence[str], regular: int
) -> float:
    """Floating-point operations of training one run; only matrix products are counted.

    ``cost`` is the task's; ``regular`` is the number of regular agents.
    """
    needs = {need for name in metrics for need in METRICS[name].needs}
    tested = sum(need in needs for need in ("average test", "test of all"))
    tested += regular * ("agent tests" in needs)
    measurement = tested * cost.test + cost.gradients * ("gradients" in needs)
    measured = 1 + -(-iterations // every)
    return iterations * cost.step + measured * measurement
