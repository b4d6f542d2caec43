"""Softmax regression on some data, for any runs: what the tests of training train."""

from dataclasses import dataclass

from bezoar import training
from bezoar.data import Dataset, Partition
from bezoar.exchange import Tuning


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
        )
