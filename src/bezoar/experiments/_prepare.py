"""From a spec to what is trained: every part is made and checked once."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from bezoar import data, training
from bezoar.experiments._identity import identity
from bezoar.experiments._made import dataset_of, network_of, part, partition_of
from bezoar.experiments._spec import RunSpec
from bezoar.networks import Network
from bezoar.training import Checkpoint, Cost, Engine, History, Run, SoftmaxTask, Workers

#: Called by an engine with the number of iterations done, and the latest metrics.
Report = Callable[[int, dict[str, Tensor]], Any]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run, ready to be trained.

    Attributes:
        spec: what it is.
        network: who is linked to whom, and who is poisoned.
        dataset: what is learned from.
        run: its parts.
    """

    spec: RunSpec
    network: Network
    dataset: data.Dataset
    run: Run

    @cached_property
    def key(self) -> str:
        """Its name in a store."""
        return identity(self.spec, self.network, self.dataset)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """What is measured."""
        return tuple(training.METRICS) if self.spec.metrics is None else self.spec.metrics

    @cached_property
    def together(self) -> Hashable:
        """What runs must have in common to be stepped together."""
        spec = self.spec
        learned = (spec.model, self.dataset, spec.partition, spec.seed, self.network.agents)
        return (*learned, spec.iterations, spec.every, self.metrics, spec.dtype, spec.device)

    @cached_property
    def cost(self) -> Cost:
        """What it takes."""
        remembered = len(self.run.optimizer.remembers) + bool(self.run.aggregator.remembers())
        return SoftmaxTask.cost(self.dataset, self.network.agents, self.spec.dtype, remembered)

    @property
    def operations(self) -> float:
        """The floating-point operations it takes."""
        spec, regular = self.spec, len(self.network.regular)
        return training.operations(self.cost, spec.iterations, spec.every, self.metrics, regular)

    def partition(self) -> data.Partition:
        """Which agent holds which samples."""
        return partition_of(self.spec, self.network.agents, self.dataset)


def prepare(spec: RunSpec) -> Prepared:
    """Make the parts of a run, and refuse what cannot be run for any reason but its partition.

    Raises:
        BezoarError: with the field, what was found and what is allowed.
    """
    network, dataset = network_of(spec), dataset_of(spec)
    run = Run(
        network=network,
        aggregator=part(spec.aggregator),
        attack=part(spec.attack),
        schedule=part(spec.schedule),
        weight_decay=spec.weight_decay,
        seed=spec.seed,
        optimizer=part(spec.optimizer),
    )
    training.check_runs([run])
    training.check_device(spec.device)
    run.attack.check(dataset.classes)
    return Prepared(spec, network, dataset, run)


def train(
    runs: Sequence[Prepared],
    workers: Workers,
    progress: Report | None = None,
    start: Checkpoint | None = None,
    keep: Callable[[Checkpoint], Any] | None = None,
) -> list[History]:
    """Train runs that are alike in :attr:`Prepared.together`, together.

    The same runs in the same order give the same bits; other company gives other last bits.

    Args:
        runs: what to train.
        workers: the threads that share the work.
        progress: as for :meth:`Engine.train`, as are the others.
        start: where an earlier training of the same runs stood.
        keep: is told where training stands.

    Returns:
        One history a run, in their order.
    """
    first = runs[0]
    task = SoftmaxTask(
        first.dataset,
        first.partition(),
        [each.run for each in runs],
        workers,
        first.spec.dtype,
        first.spec.device,
    )
    spec = first.spec
    engine = Engine(task, iterations=spec.iterations, every=spec.every, metrics=first.metrics)
    return engine.train(progress, start=start, keep=keep)
