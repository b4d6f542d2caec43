"""Trains runs without a store."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bezoar.experiments._plan import together
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._sweep import threads

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
        fields = {name: getattr(spec, name) for name in RunSpec.model_fields} | fields
    [history] = run_all([RunSpec.read(fields)])
    return history


def run_all(
    specs: Sequence[RunSpec], workers: int | None = None, progress: Progress | None = None
) -> "list[History]":
    """Train runs, those that share data and length together.

    Args:
        specs: what to run.
        workers: how many threads; by default one a core. Results do not depend on it.
        progress: called after every iteration.

    Returns:
        One history a spec, in their order.
    """
    from bezoar.experiments._prepare import prepare

    runs = [prepare(spec) for spec in specs]
    for each in runs:
        each.partition()
    groups = together(runs)
    total = sum(specs[places[0]].iterations for places in groups)
    done = 0
    histories: dict[int, History] = {}
    with threads(workers) as execute:
        for places in groups:
            group = [runs[place] for place in places]
            trained = execute(group, part_of(progress, done, total))
            histories |= zip(places, trained, strict=True)
            done += group[0].spec.iterations
    return [histories[place] for place in range(len(specs))]


def part_of(progress: Progress | None, before: int, total: int) -> "Report | None":
    """What an engine tells of one of several trainings, as progress in all of them."""
    if progress is None:
        return None

    def report(iteration: int, metrics: "dict[str, Tensor]") -> None:
        accuracy = metrics.get("accuracy")
        progress(before + iteration, total, [] if accuracy is None else accuracy.tolist())

    return report
