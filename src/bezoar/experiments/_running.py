"""From specs to histories: resolving, grouping what can share passes over the data, training."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from bezoar import aggregators, attacks, data, networks, training
from bezoar._errors import BezoarError
from bezoar._seeds import Branch, generator
from bezoar.experiments._spec import Choice, RunSpec
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
    groups: dict[Any, list[int]] = {}
    for place, (shared, _) in enumerate(resolved):
        groups.setdefault(shared, []).append(place)
    total = sum(specs[places[0]].iterations for places in groups.values())
    done = 0
    histories: dict[int, History] = {}
    with Workers(workers) as pool:
        for shared, places in groups.items():
            engine = Engine(_problem(*shared), [resolved[place][1] for place in places], pool)

            def report(iteration: int, metrics: Any, before: int = done) -> None:
                if progress is not None:
                    progress(before + iteration, total, metrics.get("accuracy", []))

            histories |= zip(places, engine.train(report), strict=True)
            done += specs[places[0]].iterations
    return [histories[place] for place in range(len(specs))]


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
