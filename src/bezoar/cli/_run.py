"""``bezoar run``."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from bezoar import report
from bezoar._errors import BezoarError
from bezoar._numbers import count
from bezoar.cli._options import spec_fields
from bezoar.cli._screen import (
    console,
    print_json,
    print_meanings,
    print_page,
    print_path,
    print_problem,
    print_table,
    training_progress,
)
from bezoar.cli._sweep import has_followed, sweep_shown, trainer_here
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
from bezoar.training import History

NOTHING_KEPT = (
    "nothing was kept; with --store DIR a run is kept, and the same command goes on from its last "
    "checkpoint"
)


def run(given: Mapping[str, Any]) -> None:
    """Train one run, or one for each rule side by side, and show the results.

    What was typed is ``given``: options with the name of a field of a spec replace it.
    """
    if has_followed(given["workers"], given["store"] and Store(given["store"])):
        return
    path: Path | None = given["spec"]
    plot: Path | None = given["plot"]
    report.check_picture(plot)
    fields = read_toml(path) if path else {}
    folder = path.parent if path else None
    # What is typed is relative to where one is, what is in a file relative to the file.
    fields |= {
        name: read_choice(name, fields[name], folder) for name in fields.keys() & set(CHOICES)
    }
    default = fields.get("aggregator", "weighted_mean")
    fields |= spec_fields(given)
    rules = given["aggregator"] or [default]
    specs = [RunSpec.read({**fields, "aggregator": rule}) for rule in rules]
    if given["baseline"]:
        specs.append(RunSpec.read({**fields, "aggregator": "weighted_mean", "poisoned": ()}))
    first = specs[0]
    before = time.perf_counter()
    runs = []
    for one in train_shown(specs, given["store"], given["workers"]):
        if isinstance(one, Failure):
            raise BezoarError(one.reason)
        runs.append(one)
    seconds = time.perf_counter() - before
    note, network = dataset_of(first).note, network_of(first)
    names = [*("" for _ in rules), report.BASELINE]  # if that was asked for, it is the last
    trained = zip(specs, runs, names, strict=False)
    curves = tuple(report.Curve.of(spec.aggregator, (run,), name) for spec, run, name in trained)
    panel = report.Panel(f"{network.name}, {first.partition}", curves, network)
    notes = report.notes_about(first.dataset, note, first.network, network.note)
    if plot:
        report.panels_figure(plot, [panel], report.shown_first(runs), " ".join(notes))
    if given["json"]:
        notes_told = {"data_note": note, "network_note": network.note}
        documents = [_document(*both) for both in zip(specs, runs, strict=True)]
        print_json({"runs": documents, "seconds": round(seconds, 3), **notes_told})
        return
    title = f"{first.model} on {first.dataset}, {first.partition}, on {first.network}"
    about = f"attack {first.attack}; {count(first.iterations, 'iteration')} in {seconds:.1f} s."
    page = report.panel_page(title, panel, f"{report.describe(network)}; {about}")
    print_page(page)
    print_meanings(page.tables[0].columns)
    for curve, spec in zip(panel.curves, specs, strict=True):
        [own] = curve.runs
        if own.agents or own.listening:
            title = f"Every agent with {curve.name}"
            print_table(report.agents_table(own, network_of(spec), title=title))
    for sentence in notes:
        console.print(sentence, markup=False)
    if plot:
        print_path("Picture", plot)


def train_shown(
    specs: Sequence[RunSpec], store: Path | None, workers: int | None
) -> Sequence[History | StoredRun | Failure]:
    """The runs, with progress: trained here, or in a store as ``bezoar sweep`` does it."""
    if store is None:
        try:
            title = f"{specs[0].network} · {specs[0].partition}"
            with trainer_here(workers, None) as trainer, training_progress(title) as progress:
                return run_all(specs, workers, progress, trainer)
        except KeyboardInterrupt:
            print_problem(f"interrupted; {NOTHING_KEPT}")
            raise typer.Exit(130) from None
    return sweep_shown(specs, Store(store), workers).runs


def _document(spec: RunSpec, run: History | StoredRun) -> dict[str, Any]:
    """A run for machines; weights are told as who listened, to whom, and how much."""
    told: dict[str, Any] = {
        "spec": spec.model_dump(mode="json"),
        "iterations": run.iterations.tolist(),
        "metrics": {name: values.tolist() for name, values in run.metrics.items()},
        "diverged": run.diverged,
    }
    if run.agents:
        told["agents"] = {name: values.tolist() for name, values in run.agents.items()}
    if run.listening:
        matrices = {k: matrix.tocoo() for k, matrix in run.listening.items()}
        told["listening"] = {
            k: [[int(w), int(v), float(x)] for w, v, x in zip(*one.coords, one.data, strict=True)]
            for k, one in matrices.items()
        }
    return told
