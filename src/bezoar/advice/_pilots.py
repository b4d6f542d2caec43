"""Short trainings on a user's network, with little data, to see how rules compare."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bezoar._arrays import Floats
from bezoar._seeds import Purpose, generator
from bezoar.advice._scenarios import Scenario
from bezoar.data import Dataset
from bezoar.experiments import Choice, RunSpec, prepare, train
from bezoar.training import Workers

if TYPE_CHECKING:
    from torch import Tensor

#: Training samples: so many an agent, within limits. Few are enough to tell rules apart.
SAMPLES_AN_AGENT, LEAST_SAMPLES, MOST_SAMPLES = 100, 2_000, 60_000

#: Test samples.
TEST_SAMPLES = 1_000

#: Images are shrunk to at most so many pixels a side, and further where there are many agents.
SIDE, SMALL_SIDE, MANY_AGENTS = 14, 7, 1_000

#: Iterations of a pilot. Shorter ones favour rules that fall behind later.
SHORTEST, LONGEST = 60, 300

#: What is measured: the mean accuracy of the regular agents' own models.
METRIC = "accuracy_mean"

#: How often it is measured in a pilot, after the start.
TIMES = 4


def pilot_data(dataset: Dataset, agents: int, seed: int) -> Dataset:
    """A part of a dataset, drawn by the seed, with small images."""
    wanted = min(max(SAMPLES_AN_AGENT * agents, LEAST_SAMPLES), MOST_SAMPLES)
    rng = generator(seed, Purpose.SAMPLES)
    train = rng.permutation(len(dataset.train))[:wanted]
    test = rng.permutation(len(dataset.test))[:TEST_SAMPLES]
    side = SMALL_SIDE if agents > MANY_AGENTS else SIDE
    return replace(
        dataset,
        train=_shrunk(dataset.train[train], side),
        train_labels=dataset.train_labels[train],
        test=_shrunk(dataset.test[test], side),
        test_labels=dataset.test_labels[test],
    )


def _shrunk(samples: NDArray[Any], side: int) -> NDArray[Any]:
    """Images with means of squares of pixels in their place; other samples as they are.

    Where an image is narrower than a square, its whole width goes into the mean.
    """
    if samples.ndim != 4 or (factor := max(samples.shape[2:]) // side) < 2:
        return samples
    count, channels, height, width = samples.shape
    high, wide = min(factor, height), min(factor, width)
    rows, columns = height // high, width // wide
    cut = samples[:, :, : rows * high, : columns * wide]
    squares = cut.reshape(count, channels, rows, high, columns, wide)
    shrunk: NDArray[np.uint8] = squares.mean(axis=(3, 5)).round().astype(np.uint8)
    return shrunk


class _OutOfTimeError(Exception):
    """Ends a training that takes too long."""


def train_pilots(
    rules: Mapping[str, Choice],
    scenarios: Sequence[Scenario],
    dataset: Dataset,
    iterations: int,
    deadline: float,
    workers: int | None = None,
    progress: Callable[[int], Any] | None = None,
    times: int = TIMES,
) -> tuple[Floats, int]:
    """Train every rule in every scenario, together; the scenarios share partition and seed.

    Args:
        rules, scenarios, dataset, iterations, workers: what is trained, on what, and how long.
        deadline: when to stop, by ``time.monotonic()``; the latest measurement is then the result.
        progress: is told the number of iterations done.
        times: how often to measure after the start.

    Returns:
        ``[rules, scenarios]`` the mean accuracy of the regular agents' own models, and after how
        many iterations it was measured; 0 if time ran out before.
    """
    every = max(1, iterations // times)
    fields = {"dataset": dataset, "iterations": iterations, "every": every, "metrics": (METRIC,)}
    runs = [
        prepare(RunSpec.read({**fields, **scenario.fields(), "aggregator": rule}))
        for rule in rules.values()
        for scenario in scenarios
    ]
    accuracy = np.full((len(rules), len(scenarios)), np.nan)
    measured = 0

    def watch(iteration: int, metrics: "Mapping[str, Tensor]") -> None:
        nonlocal measured
        if iteration % every == 0 or iteration == iterations:
            accuracy[:] = metrics[METRIC].cpu().numpy().reshape(accuracy.shape)
            measured = iteration
        if progress is not None:
            progress(iteration)
        if time.monotonic() > deadline:
            raise _OutOfTimeError

    with Workers(workers) as pool, suppress(_OutOfTimeError):
        train(runs, pool, watch)
    return np.nan_to_num(accuracy), measured
