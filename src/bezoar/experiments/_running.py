"""Trains runs without a store."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from bezoar._errors import BezoarError
from bezoar.experiments._plan import together
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._sweep import Executor, threads

if TYPE_CHECKING:
    from torch import Tensor

    from bezoar.experiments._prepare import Report
    from bezoar.training import History

#: Called with the number of iterations done, of all iterations, and the latest accuracies.
Progress = Callable[[int, int, "list[float]"], Any]


def run(spec: RunSpec | None = None, **fields: Any) -> "History":
    """Train one run.

    Args:
        spec: what to run.
        **fields: fields of :class:`RunSpec`, such as ``network="fan"`` or
            ``partition="dirichlet:alpha=0.5"``, which take the place of the spec's. Parts may be
            given as objects: ``network=Network(graph)``, ``aggregator=MyRule()``.
    """
    if spec is not None:
        if not isinstance(spec, RunSpec):
            raise BezoarError(
                f"spec: expected a RunSpec, found {type(spec).__name__}; fields are given by name, "
                'such as run(network="fan")'
            )
        fields = {name: getattr(spec, name) for name in spec.model_fields_set} | fields
    [history] = run_all([RunSpec.read(fields)])
    return history


def run_all(
    specs: Sequence[RunSpec],
    workers: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> "list[History]":
    """Train runs, those that share data and length together.

    Args:
        specs: what to run.
        workers: how many threads; by default one a core. Results do not depend on it.
        progress: called after every iteration.
        executor: who trains; by default this process.

    Returns:
        One history a spec, in their order.
    """
    from bezoar.experiments._prepare import prepare

    runs = {spec: prepare(spec) for spec in specs}
    needed = {run.needs.spec: run.needs for run in runs.values() if run.needs is not None}
    everything = list((needed | runs).values())
    for each in everything:
        each.partition()
    groups = [[everything[place] for place in places] for places in together(everything)]
    total = sum(group[0].spec.iterations for group in groups)
    done = 0
    histories: dict[RunSpec, History] = {}
    with threads(workers) if executor is None else nullcontext(executor) as execute:
        for group in groups:
            first = group[0].needs
            trained = None if first is None else first.average_model(histories[first.spec])
            found = execute(group, part_of(progress, done, total), trained=trained)
            histories |= zip((run.spec for run in group), found, strict=True)
            done += group[0].spec.iterations
    return [histories[spec] for spec in specs]


def part_of(progress: Progress | None, before: int, total: int) -> "Report | None":
    """What an engine tells of one of several trainings, as progress in all of them."""
    if progress is None:
        return None

    def report(iteration: int, metrics: "dict[str, Tensor]") -> None:
        progress(before + iteration, total, first_accuracies(metrics))

    return report


def first_accuracies(metrics: "Mapping[str, Tensor]") -> list[float]:
    """The accuracy of every run that is told first of those measured; empty if none was."""
    found = next((values for name, values in metrics.items() if name.startswith("accuracy")), None)
    return [] if found is None else found.tolist()
