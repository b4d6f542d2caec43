"""What the benchmarks run: the paper's setting, and its bare matrix products."""

from collections.abc import Callable, Sequence

import torch

from bezoar import aggregators, attacks, data, networks
from bezoar._products import linear
from bezoar._seeds import Purpose, generator
from bezoar.paper import NETWORK_TITLES, RULES
from bezoar.training import Engine, Run, SoftmaxTask, Workers

#: Samples multiplied at a time in the bare products: the best of these is their speed.
BLOCKS = (256, 512, 1024, 2048)


def paper_runs(
    rules: Sequence[str] = RULES, places: Sequence[str] = tuple(NETWORK_TITLES)
) -> list[Run]:
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
    divide = data.partition("by_class")
    partition = divide(mnist.train_labels, mnist.classes, 10, generator(0, Purpose.PARTITION))
    task = SoftmaxTask(mnist, partition, runs, workers)
    return Engine(task, iterations=10**9, every=every, metrics=metrics)


def stepper(engine: Engine) -> Callable[[], None]:
    """Steps an engine on from where it stands."""
    state = engine.start()

    def step() -> None:
        nonlocal state
        state = engine.step(state)

    return step


def bare_products(
    height: int, values: torch.Tensor, workers: Workers, block: int
) -> Callable[[], None]:
    """The two matrix products of a step, alone: logits and gradient of softmax regression.

    Rows are the classes of all runs, columns 784 pixels and the bias padded to 800; every worker
    goes through its share of the samples in blocks.
    """
    rows = torch.rand(height, 800)
    samples = len(values)
    share = -(-samples // workers.count)

    def multiply(start: int) -> None:
        for first in range(start, min(start + share, samples), block):
            part = values[first : min(first + block, start + share, samples)]
            linear(linear(rows, part), part.T)

    def work() -> None:
        workers.map(multiply, range(0, samples, share))

    return work


def best_products(runs: int, samples: int, workers: Workers) -> Callable[[], None]:
    """The bare products at the shape that is fastest on this machine now.

    Rows are as many as there are classes, or padded to a multiple of 16.
    """
    from benchmarks._measure import interleaved

    values = torch.rand(samples, 800)
    sides = {
        f"{height} {block}": bare_products(height, values, workers, block)
        for height in {10 * runs, -(-10 * runs // 16) * 16}
        for block in BLOCKS
    }
    seconds = interleaved(sides, rounds=5, warm=1)
    return sides[min(sides, key=lambda name: sorted(seconds[name])[2])]
