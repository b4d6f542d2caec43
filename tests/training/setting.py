"""Softmax regression on some data, for any runs: what the tests of training train."""

from dataclasses import dataclass

from bezoar import networks, training
from bezoar.data import Dataset, Partition
from bezoar.exchange import Tuning

TWO_CASTLE = networks.two_castle(10, 2)

#: A fan with the same agents poisoned as the two castles.
FAN = networks.fan(10, TWO_CASTLE.poisoned)


@dataclass(frozen=True)
class Setting:
    """Everything that an engine needs to know beside the runs."""

    dataset: Dataset
    partition: Partition
    iterations: int
    every: int
    metrics: tuple[str, ...] = tuple(training.METRICS)
    dtype: str = "float64"
    device: str = "cpu"
    batches: bool | None = None
    tuning: Tuning | None = None
    rounds: int = 1
    algorithm: training.Algorithm | None = None

    def engine(self, runs, workers):
        task = training.SoftmaxTask(
            self.dataset, self.partition, runs, workers, self.dtype, self.device, self.batches
        )
        return training.Engine(
            task,
            iterations=self.iterations,
            every=self.every,
            metrics=self.metrics,
            tuning=self.tuning,
            rounds=self.rounds,
            algorithm=self.algorithm,
        )


def final_models(setting, workers, *runs):
    """Each run's models, trained alone: a run's place among others decides last bits."""
    alone = [setting.engine([run], workers).train() for run in runs]
    return [history.models.numpy() for [history] in alone]


def then(first, second):
    """One network in the first iteration and another from then on."""
    return lambda iteration: first if iteration == 1 else second
