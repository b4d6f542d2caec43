"""``bezoar run``."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bezoar.cli._options import check_picture, read_poisoned
from bezoar.cli._screen import (
    console,
    number,
    print_json,
    print_page,
    print_path,
    training_progress,
)
from bezoar.experiments import RunSpec, network_of, run_all
from bezoar.report import BASELINE, Curve, Page, Panel, Table, describe, panels_figure
from bezoar.training import METRICS, History


def run(
    path: Path | None,
    given: dict[str, Any],
    aggregators: Sequence[str],
    baseline: bool,
    workers: int | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Train one run, or one a rule side by side, and show the results."""
    check_picture(plot)
    fields = (RunSpec.read_file(path) if path else {}) | given
    if "poisoned" in given:
        fields["poisoned"] = read_poisoned(given["poisoned"])
    rules = list(aggregators) or [fields.get("aggregator", "weighted_mean")]
    specs = [RunSpec.read({**fields, "aggregator": rule}) for rule in rules]
    names = [str(spec.aggregator) for spec in specs]
    if baseline:
        specs.append(specs[0].read({**fields, "aggregator": "weighted_mean", "poisoned": ()}))
        names.append(BASELINE)
    before = time.perf_counter()
    title = f"{specs[0].network} · {specs[0].partition}"
    with training_progress(title) as progress:
        histories = run_all(specs, workers, progress)
    seconds = time.perf_counter() - before
    if plot:
        _plot(plot, specs, names, histories)
    if json:
        print_json(_document(specs, histories, seconds))
        return
    page, explained = _page(specs, names, histories, seconds)
    print_page(page)
    console.print("[dim]" + "\n".join(explained) + "[/]")
    if plot:
        print_path("Picture", plot)


def _document(
    specs: Sequence[RunSpec], histories: Sequence[History], seconds: float
) -> dict[str, Any]:
    return {
        "runs": [
            {
                "spec": spec.model_dump(mode="json"),
                "iterations": history.iterations.tolist(),
                "metrics": {name: values.tolist() for name, values in history.metrics.items()},
                "diverged": history.diverged,
            }
            for spec, history in zip(specs, histories, strict=True)
        ],
        "seconds": round(seconds, 3),
    }


def _page(
    specs: Sequence[RunSpec], names: Sequence[str], histories: Sequence[History], seconds: float
) -> tuple[Page, list[str]]:
    """The last measurements of each run; of a single run, also some before.

    Returns:
        The page, and what its columns mean.
    """
    first, network = specs[0], network_of(specs[0])
    shown = {
        name: metric.column
        for name, metric in METRICS.items()
        if metric.column and name in histories[0].metrics
    }
    if len(histories) == 1:
        [history] = histories
        head, title = "iteration", names[0]
        rows = [
            (str(history.iterations[at]), *(number(history[name][at]) for name in shown))
            for at in _milestones(len(history.iterations))
        ]
    else:
        head, title = "rule", f"After {first.iterations} iterations"
        rows = [
            (name, *(number(history[metric][-1]) for metric in shown))
            for name, history in zip(names, histories, strict=True)
        ]
    table = Table(title=title, columns=(head, *shown.values()), rows=tuple(rows))
    diverged = [n for n, history in zip(names, histories, strict=True) if history.diverged]
    return Page(
        name="run",
        title=f"{first.dataset}, {first.partition}, on {first.network}",
        caption=" ".join(
            [
                f"{describe(network)} by {first.attack}; {first.iterations} iterations in "
                f"{seconds:.1f} s.",
                *(f"{name} diverged: some models are no longer finite." for name in diverged),
            ]
        ),
        command="",
        tables=(table,),
    ), [f"{column}: {METRICS[name].title}" for name, column in shown.items()]


def _milestones(count: int) -> list[int]:
    return sorted({int(at) for at in np.linspace(0, count - 1, num=min(count, 6))})


def _plot(
    path: Path, specs: Sequence[RunSpec], names: Sequence[str], histories: Sequence[History]
) -> None:
    curves = [
        Curve(
            BASELINE if name == BASELINE else spec.aggregator.name,
            (history,),
            "" if name == BASELINE else str(spec.aggregator).partition(":")[2],
        )
        for spec, name, history in zip(specs, names, histories, strict=True)
    ]
    metrics = [name for name in ("accuracy", "consensus_error") if name in histories[0].metrics]
    network = network_of(specs[0])
    panel = Panel(f"{network.name}, {specs[0].partition}", tuple(curves), network)
    panels_figure(path, [panel], metrics)
