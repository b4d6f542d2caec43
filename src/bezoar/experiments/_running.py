"""From specs to histories: resolving, grouping what can share passes over the data, training."""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from bezoar import aggregators, attacks, data, networks, training
from bezoar._errors import BezoarError
from bezoar._seeds import Branch, generator
from bezoar.experiments._spec import Choice, RunSpec
from bezoar.models import SoftmaxRegression
from bezoar.networks import Network
from bezoar.training import Engine, History, Problem, Run, Workers

#: Called with the number of iterations done, of all iterations, and the latest accuracies.
Progress = Callable[[int, int, "list[float]"], Any]


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
    resolved = [_resolve(spec) for spec in specs]
    groups = plan([shared for shared, _ in resolved], [_run_bytes(spec) for spec in specs])
    total = sum(specs[places[0]].iterations for places in groups)
    done = 0
    histories: dict[int, History] = {}
    with Workers(workers) as pool:
        for places in groups:
            shared = resolved[places[0]][0]
            engine = Engine(_problem(*shared), [resolved[place][1] for place in places], pool)

            def report(iteration: int, metrics: Any, before: int = done) -> None:
                if progress is not None:
                    progress(before + iteration, total, metrics.get("accuracy", []))

            histories |= zip(places, engine.train(report), strict=True)
            done += specs[places[0]].iterations
    return [histories[place] for place in range(len(specs))]


def plan(shared: Sequence[Any], sizes: Sequence[int], memory: int | None = None) -> list[list[int]]:
    """Which runs are stepped together: those that share everything a pass over the data needs.

    Groups are trained one after the other, each with all workers: side by side they would only
    compete for the same cores.

    Args:
        shared: for each run, what it must have in common with the others of its group.
        sizes: for each run, the bytes it takes in training.
        memory: the bytes a group may take; a larger one is split. Default: half of the machine's.

    Returns:
        The runs of each group, by their places.
    """
    memory = memory or machine_memory() // 2
    groups: dict[Any, list[list[int]]] = {}
    taken: dict[Any, int] = {}
    for place, (key, size) in enumerate(zip(shared, sizes, strict=True)):
        if key not in groups or taken[key] + size > memory:
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


def _run_bytes(spec: RunSpec) -> int:
    """Models now and before, the labels' part of gradients, and gradients at the average."""
    samples = data.load(spec.dataset)
    parameters = SoftmaxRegression(samples.classes, samples.features)
    width = 8 if spec.dtype == "float64" else 4
    return 4 * width * network_of(spec).agents * parameters.classes * parameters.width


def network_of(spec: RunSpec) -> Network:
    """The network of a spec, with its poisoned agents."""
    return _network(spec.network.name, _frozen(spec.network.options), spec.poisoned)


def partition_of(spec: RunSpec, agents: int) -> data.Partition:
    """Who holds what in a run of the spec."""
    return _partition(spec.dataset, spec.partition, agents, spec.seed)


@lru_cache(maxsize=32)
def _network(
    name: str, options: tuple[tuple[str, Any], ...], poisoned: int | tuple[int, ...] | None
) -> Network:
    return networks.create_poisoned(name, dict(options), poisoned)


def _frozen(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in options.items())


@lru_cache(maxsize=32)
def _partition(dataset: str, choice: Any, agents: int, seed: int) -> data.Partition:
    samples = data.load(dataset)
    rng = generator(seed, Branch.PARTITION)
    make = data.partition(choice.name, **choice.options)
    return make(samples.train_labels, samples.classes, agents, rng)


def _resolve(spec: RunSpec) -> tuple[tuple[Any, ...], Run]:
    """What a run may share with others, and the run itself."""
    network = network_of(spec)
    run = Run(
        network=network,
        aggregator=_make(aggregators.create, spec.aggregator),
        attack=_make(attacks.create, spec.attack),
        schedule=_make(training.schedule, spec.schedule),
        weight_decay=spec.weight_decay,
        seed=spec.seed,
    )
    partition = partition_of(spec, network.agents)
    metrics = spec.metrics if spec.metrics is not None else tuple(training.METRICS)
    return (
        (spec.dataset, partition, spec.iterations, spec.every, metrics, spec.dtype, spec.device),
        run,
    )


def _problem(dataset: str, *shared: Any) -> Problem:
    return Problem(data.load(dataset), *shared)


def _make(create: Callable[..., Any], choice: Choice) -> Any:
    try:
        return create(choice.name, **choice.options)
    except TypeError as error:
        raise BezoarError(f"{choice}: {error}") from error
