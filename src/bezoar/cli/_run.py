"""``bezoar run``."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bezoar.cli._options import check_picture, read_poisoned
from bezoar.cli._screen import console, number, print_json, print_table, training_progress
from bezoar.experiments import RunSpec, network_of, run_all
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
        names.append("baseline")
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
    _print(specs, names, histories, seconds)
    if plot:
        console.print(f"Picture: {plot}")


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


def _print(
    specs: Sequence[RunSpec], names: Sequence[str], histories: Sequence[History], seconds: float
) -> None:
    first = specs[0]
    network = network_of(first)
    console.print(
        f"[bold]{first.dataset}[/], {first.partition}, on {first.network} with {network.agents} "
        f"agents, poisoned {list(network.poisoned) or 'nobody'} by {first.attack}; "
        f"{first.iterations} iterations in {seconds:.1f} s"
    )
    shown = {
        name: metric.column
        for name, metric in METRICS.items()
        if metric.column and name in histories[0].metrics
    }
    if len(histories) == 1:
        [history] = histories
        rows = [
            [str(history.iterations[at]), *(number(history[name][at]) for name in shown)]
            for at in _milestones(len(history.iterations))
        ]
        print_table(names[0], ["iteration", *shown.values()], rows)
    else:
        rows = [
            [name, *(number(history[metric][-1]) for metric in shown)]
            for name, history in zip(names, histories, strict=True)
        ]
        print_table(f"After {first.iterations} iterations", ["rule", *shown.values()], rows)
    for name, history in zip(names, histories, strict=True):
        if history.diverged:
            console.print(f"[bold red]{name} diverged: some models are no longer finite[/]")
    explained = [f"{column}: {METRICS[name].title}" for name, column in shown.items()]
    console.print("[dim]" + "\n".join(explained) + "[/]")


def _milestones(count: int) -> list[int]:
    return sorted({int(at) for at in np.linspace(0, count - 1, num=min(count, 6))})


def _plot(
    path: Path, specs: Sequence[RunSpec], names: Sequence[str], histories: Sequence[History]
) -> None:
    from dataclasses import replace

    from bezoar.report import Panel, look, panels_figure

    curves = []
    for place, (spec, name, history) in enumerate(zip(specs, names, histories, strict=True)):
        rule = "baseline" if name == "baseline" else spec.aggregator.name
        drawn = look(rule, place)
        if spec.aggregator.options and rule != "baseline":
            drawn = replace(drawn, label=f"{drawn.label} {str(spec.aggregator).partition(':')[2]}")
        curves.append((drawn, history))
    metrics = [name for name in ("accuracy", "consensus_error") if name in histories[0].metrics]
    network = network_of(specs[0])
    title = f"{network.name}, {specs[0].partition}"
    panels_figure(path, [Panel(title, network, curves)], metrics)
