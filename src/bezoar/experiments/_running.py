"""Training runs without a store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bezoar._errors import BezoarError
from bezoar.experiments._grid import as_specs
from bezoar.experiments._plan import together
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._watch import Trainer

if TYPE_CHECKING:
    from torch import Tensor

    from bezoar.experiments._prepare import Prepared, Report
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
    specs: Iterable[RunSpec],
    workers: int | None = None,
    progress: Progress | None = None,
    trainer: Trainer | None = None,
) -> "list[History]":
    """Train runs, those that share data and length together.

    Args:
        specs: what to run.
        workers: how many threads; by default one a core. Results do not depend on it.
        progress: called after every iteration.
        trainer: who trains, if it is not this process alone.

    Returns:
        One history a spec, in their order.
    """
    from bezoar.experiments._prepare import prepare

    specs = as_specs(specs)
    runs = {spec: prepare(spec) for spec in specs}
    histories = dict(
        zip(runs, train_all(list(runs.values()), workers, progress, trainer), strict=True)
    )
    return [histories[spec] for spec in specs]


def train_all(
    runs: "Sequence[Prepared]",
    workers: int | None = None,
    progress: Progress | None = None,
    trainer: Trainer | None = None,
) -> "list[History]":
    """Train prepared runs; arguments as for :func:`run_all`."""
    from bezoar.experiments._prepare import train
    from bezoar.training import Workers

    needed = {run.needs.spec: run.needs for run in runs if run.needs is not None}
    everything = [*needed.values(), *runs]
    for each in everything:
        each.partition()
    groups = together(everything)
    lengths = [everything[places[0]].spec.iterations for places in groups]
    trained: dict[RunSpec, History] = {}
    histories: dict[int, History] = {}
    with Workers(workers) as pool:
        execute = trainer or partial(train, workers=pool)
        for number, places in enumerate(groups):
            group = [everything[place] for place in places]
            first = group[0].needs
            start = None if first is None else first.average_model(trained[first.spec])
            report = part_of(progress, sum(lengths[:number]), sum(lengths))
            found = execute(group, progress=report, trained=start)
            histories |= zip(places, found, strict=True)
            trained |= zip((run.spec for run in group), found, strict=True)
    return [histories[len(needed) + number] for number in range(len(runs))]


def part_of(progress: Progress | None, before: int, total: int) -> "Report | None":
    """Turns the progress of one of several trainings into progress of all of them."""
    if progress is None:
        return None

    def report(iteration: int, metrics: "dict[str, Tensor]") -> None:
        progress(before + iteration, total, first_accuracies(metrics))

    return report


def first_accuracies(metrics: "Mapping[str, Tensor]") -> list[float]:
    """The first metric of accuracy that was measured, for every run; empty if there is none."""
    found = next((values for name, values in metrics.items() if name.startswith("accuracy")), None)
    return [] if found is None else found.tolist()
