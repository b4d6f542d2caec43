"""``bezoar run``."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bezoar.cli._options import check_picture, read_poisoned
from bezoar.cli._screen import console, print_json, print_page, print_path, training_progress
from bezoar.experiments import RunSpec, network_of, run_all
from bezoar.report import BASELINE, Curve, Panel, panel_page, panels_figure
from bezoar.training import METRICS, History


def run(
    path: Path | None,
    options: Mapping[str, Any],
    aggregators: Sequence[str],
    baseline: bool,
    workers: int | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Train one run, or one for each rule side by side, and show the results.

    Options that have the name of a field of a spec replace it.
    """
    check_picture(plot)
    fields = RunSpec.read_file(path) if path else {}
    names = RunSpec.model_fields.keys() - {"aggregator"}
    fields |= {name: options[name] for name in names if options.get(name) is not None}
    if options.get("poisoned") is not None:
        fields["poisoned"] = read_poisoned(options["poisoned"])
    rules = list(aggregators) or [fields.get("aggregator", "weighted_mean")]
    specs = [RunSpec.read({**fields, "aggregator": rule}) for rule in rules]
    if baseline:
        specs.append(RunSpec.read({**fields, "aggregator": "weighted_mean", "poisoned": ()}))
    first = specs[0]
    before = time.perf_counter()
    with training_progress(f"{first.network} · {first.partition}") as progress:
        histories = run_all(specs, workers, progress)
    seconds = time.perf_counter() - before
    panel = _panel(specs, histories, baseline)
    metrics = [name for name in ("accuracy", "consensus_error") if name in histories[0].metrics]
    if plot:
        panels_figure(plot, [panel], metrics)
    if json:
        print_json(_document(specs, histories, seconds))
        return
    title = f"{first.dataset}, {first.partition}, on {first.network}"
    about = f"attack {first.attack}; {first.iterations} iterations in {seconds:.1f} s."
    page = panel_page(title, panel, about)
    print_page(page)
    for metric in METRICS.values():
        if metric.column in page.tables[0].columns:
            console.print(f"{metric.column}: {metric.title}", style="dim")
    if plot:
        print_path("Picture", plot)


def _panel(specs: Sequence[RunSpec], histories: Sequence[History], baseline: bool) -> Panel:
    """A curve for each run; the last may be the baseline."""
    curves = []
    for place, (spec, history) in enumerate(zip(specs, histories, strict=True), start=1):
        rule, _, options = str(spec.aggregator).partition(":")
        is_baseline = baseline and place == len(specs)
        curves.append(Curve(BASELINE if is_baseline else rule, (history,), options))
    network = network_of(specs[0])
    return Panel(f"{network.name}, {specs[0].partition}", tuple(curves), network)


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
