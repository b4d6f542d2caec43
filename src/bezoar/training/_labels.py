"""What every agent believes its samples to be, in every run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bezoar._seeds import Branch, generator
from bezoar.data import Dataset, Partition
from bezoar.training._run import Run


@dataclass(frozen=True)
class Beliefs:
    """The labels of one poisoned agent in one run.

    Attributes:
        run: the number of the run.
        agent: the agent.
        labels: ``[n]`` what it takes its samples for.
        dynamic: ``[n]`` where instead its current model decides, in every iteration anew.
    """

    run: int
    agent: int
    labels: NDArray[np.int64]
    dynamic: NDArray[np.bool_]


def poisoned_beliefs(dataset: Dataset, partition: Partition, runs: Sequence[Run]) -> list[Beliefs]:
    """The labels of every poisoned agent in every run; all others believe what is true."""
    found = []
    for number, run in enumerate(runs):
        for agent in run.network.poisoned:
            truth = dataset.train_labels[partition.samples(agent)]
            rng = generator(run.seed, Branch.ATTACK, agent)
            touched = run.attack.touched(truth, rng)
            labels = np.where(touched, run.attack.corrupt(truth, dataset.classes, rng), truth)
            found.append(Beliefs(number, agent, labels, touched & run.attack.dynamic))
    return found
