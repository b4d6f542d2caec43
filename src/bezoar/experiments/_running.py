"""From specs to histories: resolving, grouping what can share passes over the data, training."""

import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

from torch import Tensor

from bezoar import aggregators, attacks, data, networks, training
from bezoar._errors import BezoarError
from bezoar._seeds import Purpose, generator
from bezoar.experiments._spec import Choice, RunSpec
from bezoar.experiments._stored_run import StoredRun
from bezoar.networks import Network
from bezoar.training import Checkpoint, Cost, Engine, History, Run, SoftmaxTask, Workers

#: Called with the number of iterations done, of all iterations, and the latest accuracies.
Progress = Callable[[int, int, "list[float]"], Any]

#: Called by an engine with the number of iterations done, and the latest metrics.
Report = Callable[[int, dict[str, Tensor]], Any]

#: Runs stepped together at the most: more would gain no speed, and stand to lose more at once.
MOST_RUNS = 128


def run(spec: RunSpec | None = None, **fields: Any) -> History:
    """Train one run.

    Args:
        spec: what to run; or give its fields.
        **fields: fields of :class:`RunSpec`, such as ``network="fan"`` or
            ``partition="dirichlet:alpha=0.5"``.
    """
    [history] = run_all([spec or RunSpec.read(fields)])
    return history


def run_all(
    specs: Sequence[RunSpec], workers: int | None = None, progress: Progress | None = None
) -> list[History]:
    """Train runs, those that share data and length together.

    Args:
        specs: what to run.
        workers: how many threads; by default one a core. Results do not depend on it.
        progress: called after every iteration.

    Returns:
        One history a spec, in their order.
    """
    for spec in specs:
        check(spec)
        partition_of(spec, network_of(spec).agents)
    groups = plan([shared_by(spec) for spec in specs], [run_bytes(spec) for spec in specs])
    total = sum(specs[places[0]].iterations for places in groups)
    done = 0
    histories: dict[int, History] = {}
    with Workers(workers) as pool:
        for places in groups:
            group = [specs[place] for place in places]
            trained = train_group(group, pool, part_of(progress, done, total))
            histories |= zip(places, trained, strict=True)
            done += group[0].iterations
    return [histories[place] for place in range(len(specs))]


def part_of(progress: Progress | None, before: int, total: int) -> Report | None:
    """What :meth:`Engine.train` tells of one of several trainings, as progress in all of them."""
    if progress is None:
        return None

    def report(iteration: int, metrics: dict[str, Tensor]) -> None:
        accuracy = metrics.get("accuracy")
        progress(before + iteration, total, [] if accuracy is None else accuracy.tolist())

    return report


def train_group(
    specs: Sequence[RunSpec],
    workers: Workers,
    progress: Report | None = None,
    start: Checkpoint | None = None,
    keep: Callable[[Checkpoint], Any] | None = None,
) -> list[History]:
    """Train runs that can share passes over the data, together.

    The same specs in the same order give the same bits; other company gives other last bits.

    Args:
        specs: what to run; alike in :func:`shared_by`.
        workers: the threads that share the work.
        progress: as for :meth:`Engine.train`, as are the others.
        start: where an earlier training of the same specs stood.
        keep: is told where training stands.

    Returns:
        One history a spec, in their order.
    """
    first = specs[0]
    runs = [_run(spec, network_of(spec)) for spec in specs]
    task = SoftmaxTask(
        data.load(first.dataset),
        partition_of(first, runs[0].network.agents),
        runs,
        workers,
        first.dtype,
        first.device,
    )
    engine = Engine(task, iterations=first.iterations, every=first.every, metrics=metrics_of(first))
    return engine.train(progress, start=start, keep=keep)


def plan(
    shared: Sequence[Hashable],
    sizes: Sequence[int],
    memory: int | None = None,
    most: int = MOST_RUNS,
) -> list[list[int]]:
    """Which runs are stepped together: those that share everything a pass over the data needs.

    Groups are trained one after the other, each with all workers: side by side they would only
    compete for the same cores.

    Args:
        shared: for each run, what it must have in common with the others of its group.
        sizes: for each run, the bytes it takes in training.
        memory: the bytes a group may take; a larger one is split. Default: half of the machine's.
        most: the runs a group may have; more are split evenly.

    Returns:
        The runs of each group, by their places.
    """
    memory = memory or machine_memory() // 2
    counts = Counter(shared)
    groups: dict[Hashable, list[list[int]]] = {}
    taken: dict[Hashable, int] = {}
    for place, (key, size) in enumerate(zip(shared, sizes, strict=True)):
        parts = -(-counts[key] // most)
        full = key in groups and len(groups[key][-1]) >= -(-counts[key] // parts)
        if key not in groups or full or taken[key] + size > memory:
            groups.setdefault(key, []).append([])
            taken[key] = 0
        groups[key][-1].append(place)
        taken[key] += size
    return [places for parts in groups.values() for places in parts]


def machine_memory() -> int:
    """The bytes of memory this machine has; 8 GB where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def shared_by(spec: RunSpec) -> Hashable:
    """What a spec's run must have in common with those it is stepped together with."""
    agents = network_of(spec).agents
    learned = (spec.model, spec.dataset, spec.partition, spec.seed, agents)
    return (*learned, spec.iterations, spec.every, spec.metrics, spec.dtype, spec.device)


def cost_of(spec: RunSpec) -> Cost:
    """What a run of the spec takes."""
    run = _run(spec, network_of(spec))
    remembered = len(run.optimizer.remembers) + bool(run.aggregator.remembers())
    return SoftmaxTask.cost(data.load(spec.dataset), run.network.agents, spec.dtype, remembered)


def run_bytes(spec: RunSpec) -> int:
    """The bytes that a run of the spec takes in training."""
    return int(cost_of(spec).bytes)


def operations_of(spec: RunSpec) -> float:
    """The floating-point operations that a run of the spec takes."""
    regular = len(network_of(spec).regular)
    return training.operations(
        cost_of(spec), spec.iterations, spec.every, metrics_of(spec), regular
    )


def metrics_of(spec: RunSpec) -> tuple[str, ...]:
    """The metrics that a run of the spec takes."""
    return tuple(training.METRICS) if spec.metrics is None else spec.metrics


def check(spec: RunSpec) -> None:
    """Refuse a spec that cannot be run, for any reason but its partition.

    Raises:
        BezoarError: with the field, what was found and what is allowed.
    """
    run = _run(spec, network_of(spec))
    training.check_runs([run])
    training.check_length(spec.iterations, spec.every, metrics_of(spec))
    training.check_device(spec.device)
    run.attack.check(data.load(spec.dataset).classes)


def network_of(spec: RunSpec) -> Network:
    """The network of a spec, with its poisoned agents."""
    return _network(*_site(spec))


def partition_of(spec: RunSpec, agents: int) -> data.Partition:
    """Who holds what in a run of the spec."""
    return _partition(spec.dataset, spec.partition, agents, spec.seed)


def _site(spec: RunSpec) -> tuple[Choice, int | tuple[int, ...] | None, Hashable]:
    """What a network is made from, with the state of the file it is read from, if any."""
    stamp = None
    if "path" in spec.network.options:
        try:
            found = os.stat(spec.network.options["path"])
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        except (OSError, TypeError, ValueError):
            pass  # reading it will say what is wrong
    return spec.network, spec.poisoned, stamp


@lru_cache(maxsize=128)
def _network(choice: Choice, poisoned: int | tuple[int, ...] | None, stamp: Hashable) -> Network:
    return networks.create_poisoned(choice.name, choice.options, poisoned)


@lru_cache(maxsize=32)
def _partition(dataset: str, choice: Choice, agents: int, seed: int) -> data.Partition:
    samples = data.load(dataset)
    rng = generator(seed, Purpose.PARTITION)
    make = data.partition(choice.name, **choice.options)
    return make(samples.train_labels, samples.classes, agents, rng)


def _run(spec: RunSpec, network: Network) -> Run:
    return Run(
        network=network,
        aggregator=_make(aggregators.create, spec.aggregator),
        attack=_make(attacks.create, spec.attack),
        schedule=_make(training.schedule, spec.schedule),
        weight_decay=spec.weight_decay,
        seed=spec.seed,
        optimizer=_make(training.optimizer, spec.optimizer),
    )


def _make(create: Callable[..., Any], choice: Choice) -> Any:
    try:
        return create(choice.name, **choice.options)
    except TypeError as error:
        raise BezoarError(f"{choice}: {error}") from error


def spec_of(run: StoredRun) -> RunSpec:
    """The spec of a finished run."""
    return run.spec


def network_of_run(run: StoredRun) -> Network:
    """The network that a finished run was trained on."""
    return network_of(run.spec)
