"""``bezoar run``."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from bezoar._errors import BezoarError
from bezoar.cli._options import check_picture
from bezoar.cli._screen import (
    console,
    errors,
    print_json,
    print_meanings,
    print_page,
    print_path,
    print_table,
    training_progress,
)
from bezoar.cli._sweep import sweep_shown
from bezoar.experiments import (
    CHOICES,
    Failure,
    RunSpec,
    Store,
    StoredRun,
    dataset_of,
    network_of,
    read_choice,
    read_toml,
    run_all,
)
from bezoar.report import (
    BASELINE,
    Curve,
    Panel,
    agents_table,
    data_note,
    describe,
    network_note,
    panel_page,
    panels_figure,
    shown_first,
)
from bezoar.training import History

NOTHING_KEPT = (
    "nothing was kept; with --store DIR a run is kept, and the same command goes on from its last "
    "checkpoint"
)


def run(
    path: Path | None,
    options: Mapping[str, Any],
    aggregators: Sequence[str],
    baseline: bool,
    store: Path | None,
    workers: int | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Train one run, or one for each rule side by side, and show the results.

    Options that have the name of a field of a spec replace it.
    """
    check_picture(plot)
    fields = read_toml(path) if path else {}
    folder = path.parent if path else None
    # What is typed is relative to where one is, what is in a file relative to the file.
    fields |= {
        name: read_choice(name, fields[name], folder) for name in fields.keys() & set(CHOICES)
    }
    names = RunSpec.model_fields.keys() - {"aggregator"}
    fields |= {name: options[name] for name in names if options.get(name) is not None}
    rules = list(aggregators) or [fields.get("aggregator", "weighted_mean")]
    specs = [RunSpec.read({**fields, "aggregator": rule}) for rule in rules]
    if baseline:
        specs.append(RunSpec.read({**fields, "aggregator": "weighted_mean", "poisoned": ()}))
    first = specs[0]
    before = time.perf_counter()
    runs = []
    for one in train_shown(specs, store, workers):
        if isinstance(one, Failure):
            raise BezoarError(one.reason)
        runs.append(one)
    seconds = time.perf_counter() - before
    panel = _panel(specs, runs, baseline)
    note, network = dataset_of(first).note, network_of(first)
    notes = [data_note(first.dataset, note), network_note(first.network, network.note)]
    metrics = shown_first(runs)
    if plot:
        panels_figure(plot, [panel], metrics, " ".join(filter(None, notes)))
    if json:
        print_json(
            _document(specs, runs, seconds) | {"data_note": note, "network_note": network.note}
        )
        return
    title = f"{first.model} on {first.dataset}, {first.partition}, on {first.network}"
    about = f"attack {first.attack}; {first.iterations} iterations in {seconds:.1f} s."
    page = panel_page(title, panel, f"{describe(network)}; {about}")
    print_page(page)
    print_meanings(page.tables[0].columns)
    for curve, spec in zip(panel.curves, specs, strict=True):
        [own] = curve.runs
        if own.agents or own.listening:
            title = f"Every agent with {curve.name}"
            print_table(agents_table(own, network_of(spec), title=title))
    for sentence in filter(None, notes):
        console.print(sentence, markup=False)
    if plot:
        print_path("Picture", plot)


def train_shown(
    specs: Sequence[RunSpec], store: Path | None, workers: int | None
) -> Sequence[History | StoredRun | Failure]:
    """The runs, with progress: trained here, or in a store as ``bezoar sweep`` does it."""
    if store is None:
        try:
            with training_progress(f"{specs[0].network} · {specs[0].partition}") as progress:
                return run_all(specs, workers, progress)
        except KeyboardInterrupt:
            errors.print(f"bezoar: interrupted; {NOTHING_KEPT}", markup=False, soft_wrap=True)
            raise typer.Exit(130) from None
    return sweep_shown(specs, Store(store), workers).runs


def _panel(specs: Sequence[RunSpec], runs: Sequence[History | StoredRun], baseline: bool) -> Panel:
    """A curve for each run; the last may be the baseline."""
    curves = []
    for place, (spec, run) in enumerate(zip(specs, runs, strict=True), start=1):
        is_baseline = baseline and place == len(specs)
        curves.append(Curve.of(spec.aggregator, (run,), BASELINE if is_baseline else ""))
    network = network_of(specs[0])
    return Panel(f"{network.name}, {specs[0].partition}", tuple(curves), network)


def _document(
    specs: Sequence[RunSpec], runs: Sequence[History | StoredRun], seconds: float
) -> dict[str, Any]:
    return {
        "runs": [
            {
                "spec": spec.model_dump(mode="json"),
                "iterations": run.iterations.tolist(),
                "metrics": {name: values.tolist() for name, values in run.metrics.items()},
                **_of_agents(run),
                "diverged": run.diverged,
            }
            for spec, run in zip(specs, runs, strict=True)
        ],
        "seconds": round(seconds, 3),
    }


def _of_agents(run: History | StoredRun) -> dict[str, Any]:
    """What was asked for of single agents; weights as who listened, to whom, and how much."""
    told: dict[str, Any] = {}
    if run.agents:
        told["agents"] = {name: values.tolist() for name, values in run.agents.items()}
    if run.listening:
        matrices = {k: matrix.tocoo() for k, matrix in run.listening.items()}
        told["listening"] = {
            k: [[int(w), int(v), float(x)] for w, v, x in zip(*one.coords, one.data, strict=True)]
            for k, one in matrices.items()
        }
    return told
