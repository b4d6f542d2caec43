"""The labels of poisoned agents."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bezoar._seeds import Purpose, generator
from bezoar.attacks import OwnData
from bezoar.data import Dataset, Partition
from bezoar.training._run import Run


@dataclass(frozen=True)
class PoisonedLabels:
    """The labels of one poisoned agent in one run.

    Attributes:
        run: the number of the run.
        agent: the agent.
        labels: ``[n]`` the labels it trains with.
        dynamic: ``[n]`` where the attack decides instead, in every iteration anew.
    """

    run: int
    agent: int
    labels: NDArray[np.int64]
    dynamic: NDArray[np.bool_]


def poisoned_labels(
    dataset: Dataset, partition: Partition, runs: Sequence[Run]
) -> list[PoisonedLabels]:
    """The labels of every poisoned agent in every run; all others have the true ones."""
    found = []
    for number, run in enumerate(runs):
        for agent in run.network.poisoned:
            places = partition.samples(agent)
            own = OwnData(dataset.train, dataset.train_labels, places, dataset.classes)
            rng = generator(run.seed, Purpose.ATTACK, agent)
            labels, dynamic = run.attack.on_labels(own, rng)
            found.append(PoisonedLabels(number, agent, labels, dynamic))
    return found
