"""From a spec to what is trained: every part is made and checked once."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from torch import Tensor

from bezoar import _parts, data, training
from bezoar._errors import BezoarError
from bezoar._seeds import Purpose, generator
from bezoar.experiments._choice import Choice
from bezoar.experiments._identity import identity
from bezoar.experiments._spec import RunSpec, spec_of
from bezoar.networks import Network
from bezoar.store import StoredRun
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
        choice = self.spec.partition
        return _partition(self.dataset, choice, _maker(choice), self.network.agents, self.spec.seed)


def prepare(spec: RunSpec) -> Prepared:
    """Make the parts of a run, and refuse what cannot be run for any reason but its partition.

    Raises:
        BezoarError: with the field, what was found and what is allowed.
    """
    network, dataset = network_of(spec), dataset_of(spec)
    run = Run(
        network=network,
        aggregator=_part(spec.aggregator, _maker(spec.aggregator)),
        attack=_part(spec.attack, _maker(spec.attack)),
        schedule=_part(spec.schedule, _maker(spec.schedule)),
        weight_decay=spec.weight_decay,
        seed=spec.seed,
        optimizer=_part(spec.optimizer, _maker(spec.optimizer)),
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


def network_of(spec: RunSpec) -> Network:
    """The network of a spec, with its poisoned agents."""
    choice, poisoned = spec.network, spec.poisoned
    if isinstance(poisoned, int):
        if choice.part is not None:
            raise BezoarError(
                f"poisoned: of a network that is given as an object, say which agents, such as "
                f"[3]; found {poisoned}"
            )
        return _network(choice, _maker(choice), _stamps(choice), poisoned)
    network = _network(choice, _maker(choice), _stamps(choice), None)
    return network if poisoned is None else _poisoned(network, poisoned)


def network_of_run(run: StoredRun) -> Network:
    """The network that a finished run was trained on."""
    return run.network or network_of(spec_of(run))


def dataset_of(spec: RunSpec) -> data.Dataset:
    """The data of a spec."""
    choice = spec.dataset
    dataset: data.Dataset = _dataset(choice, _maker(choice), _stamps(choice))
    return dataset


def run_key(spec: RunSpec) -> str:
    """The name of a spec's run in a store; see :func:`bezoar.experiments._identity.identity`."""
    return identity(spec, network_of(spec), dataset_of(spec))


def partition_of(spec: RunSpec) -> data.Partition:
    """Which agent holds which samples in a run of a spec."""
    return prepare(spec).partition()


# Parts are kept for specs that share them. What they are made from may change while a process
# lives, so the maker of a part, and the state of the files it reads, are told beside the choice.


def _maker(choice: Choice) -> Any:
    return None if choice.part is not None else _parts.maker(choice.kind, choice.name)


def _stamps(choice: Choice) -> Hashable:
    stamps = []
    for option in choice.paths():
        try:
            found = Path(choice.options[option]).stat()
            stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
        except (OSError, TypeError):
            pass  # reading it will say what is wrong
    return tuple(stamps)


@lru_cache(maxsize=1024)
def _part(choice: Choice, maker: Any) -> Any:
    return choice.make()


@lru_cache(maxsize=128)
def _network(choice: Choice, maker: Any, stamps: Hashable, poisoned: int | None) -> Network:
    made: Network = choice.make() if poisoned is None else choice.make(poisoned=poisoned)
    return made


@lru_cache(maxsize=128)
def _poisoned(network: Network, poisoned: tuple[int, ...]) -> Network:
    return network.with_poisoned(poisoned)


@lru_cache(maxsize=8)
def _dataset(choice: Choice, maker: Any, stamps: Hashable) -> Any:
    return choice.make()


@lru_cache(maxsize=32)
def _partition(
    dataset: data.Dataset, choice: Choice, maker: Any, agents: int, seed: int
) -> data.Partition:
    rng = generator(seed, Purpose.PARTITION)
    made: data.Partition = choice.make()(dataset.train_labels, dataset.classes, agents, rng)
    return made
