"""What the benchmarks run: the paper's setting, and its bare matrix products."""

from collections.abc import Callable, Sequence

import torch

from bezoar import aggregators, attacks, data, networks, training
from bezoar._seeds import Branch, generator
from bezoar.training import Engine, Problem, Run, Workers

RULES = (
    "weighted_mean",
    "trimmed_mean",
    "faba",
    "centered_clipping",
    "clipped_gossip",
    "ios",
    "rfa",
    "lfighter",
)
NETWORKS = ("two_castle", "line", "fan")

#: Samples multiplied at a time in the bare products: the best of these is their speed.
BLOCKS = (256, 512, 1024, 2048)


def paper_runs(rules: Sequence[str] = RULES, places: Sequence[str] = NETWORKS) -> list[Run]:
    """Every rule and the baseline on every network, under label flipping."""
    flip = attacks.create("label_flip")
    runs = []
    for place in places:
        network = networks.create(place)
        runs += [Run(network, aggregators.create(rule), flip) for rule in rules]
        runs.append(Run(network.with_poisoned(()), aggregators.create("weighted_mean"), flip))
    return runs


def mnist_engine(
    runs: Sequence[Run], workers: Workers, metrics: tuple[str, ...] = (), every: int = 10**9
) -> Engine:
    """An engine for MNIST by class over ten agents."""
    mnist = data.mnist()
    deal = data.partition("by_class")
    partition = deal(mnist.train_labels, mnist.classes, 10, generator(0, Branch.PARTITION))
    problem = Problem(mnist, partition, 10**9, every, metrics)
    return Engine(problem, runs, workers)


def stepper(engine: Engine, steps: int = 1) -> Callable[[], None]:
    """Steps an engine on from where it stands."""
    state = engine.start()

    def step() -> None:
        nonlocal state
        for _ in range(steps):
            state = engine.step(state)

    return step


def bare_products(runs: int, samples: int, workers: Workers, block: int) -> Callable[[], None]:
    """The two matrix products of a step, alone: logits and gradient of softmax regression.

    Rows are the classes of all runs, columns 784 pixels and the bias padded to 800; every worker
    goes through its share of the samples in blocks.
    """
    height = -(-10 * runs // 16) * 16
    rows = torch.rand(height, 800)
    values = torch.rand(samples, 800)
    share = -(-samples // workers.count)

    def multiply(start: int) -> None:
        like = {"dtype": torch.float32, "device": torch.device("cpu")}
        scores = workers.buffer("bare_scores", (height, block), **like)  # type: ignore[arg-type]
        sums = workers.buffer("bare_sums", (height, 800), **like)  # type: ignore[arg-type]
        for first in range(start, min(start + share, samples), block):
            part = values[first : min(first + block, start + share, samples)]
            here = scores[:, : len(part)]
            torch.mm(rows, part.T, out=here)
            sums.addmm_(here, part)

    def work() -> None:
        workers.map(multiply, range(0, samples, share))

    return work


def best_products(runs: int, samples: int, workers: Workers) -> Callable[[], None]:
    """The bare products in the block size that is fastest on this machine now."""
    from benchmarks._measure import interleaved

    sides = {str(block): bare_products(runs, samples, workers, block) for block in BLOCKS}
    seconds = interleaved(sides, rounds=5, warm=1)
    return sides[min(sides, key=lambda name: sorted(seconds[name])[2])]


__all__ = [
    "NETWORKS",
    "RULES",
    "best_products",
    "mnist_engine",
    "paper_runs",
    "stepper",
    "training",
]
