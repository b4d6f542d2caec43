"""How fast this machine is at what training consists of."""

import statistics
import time
from typing import Any

import torch

from bezoar.models import SoftmaxRegression
from bezoar.training._metrics import BY_AGENT, BY_AVERAGE, BY_GRADIENT
from bezoar.training._run import Problem
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


def operations(problem: Problem, runs: int, regular: int) -> float:
    """Floating-point operations of a training, in float32; only matrix products are counted.

    Args:
        problem: what is trained, on a dataset.
        runs: how many at once.
        regular: the number of regular agents.
    """
    dataset = problem.dataset
    if dataset is None:
        return 0.0
    model = SoftmaxRegression(dataset.classes, dataset.features)
    sample = 2 * model.classes * model.width * runs
    step = 2 * sample * len(dataset.train)  # scores, then gradients
    wanted = set(problem.metrics)
    tested = bool(wanted & BY_AVERAGE) + regular * bool(wanted & BY_AGENT)
    measurement = tested * sample * len(dataset.test) + step * bool(wanted & BY_GRADIENT)
    measured = 1 + -(-problem.iterations // problem.every)
    whole = problem.iterations * step + measured * measurement
    return float(whole) * (2 if problem.dtype == "float64" else 1)
