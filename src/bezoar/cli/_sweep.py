"""``bezoar sweep``."""

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from bezoar.cli._progress import plan_text, sweep_progress
from bezoar.cli._screen import console, count, duration, errors, number, print_json, print_table
from bezoar.experiments import (
    Failure,
    RunSpec,
    Store,
    StoredRun,
    StoreError,
    SweepPlan,
    Swept,
    plan_sweep,
    read_sweep,
    sweep,
)
from bezoar.experiments._known import CHOICES
from bezoar.experiments._rows import FORMAL, field_text
from bezoar.training import METRICS

#: The fields in which runs may differ, in the order of the closing table.
_FIRST = ("aggregator", "network", "partition", "attack", "poisoned")
FIELDS = [*_FIRST, *(f for f in RunSpec.model_fields if f not in (*_FIRST, *FORMAL))]

#: Values of a field that become columns of the closing table at the most.
COLUMNS = 6

#: Rows of the closing table at the most.
ROWS = 60

#: Failures told in full at the most.
FAILURES = 20

GOES_ON = "what is finished is kept, and the same command goes on from there"


def run_sweep(path: Path, where: Path, workers: int | None, dry_run: bool, json: bool) -> None:
    """Have all runs of a document in a store, or only tell what there is to do."""
    specs = read_sweep(path)
    store = Store(where)
    if dry_run:
        plan = plan_sweep(specs, store)
        if json:
            print_json(_plan_document(plan, workers))
        else:
            console.print(plan_text(plan, workers))
            print_failures(plan.refused)
        return
    before = time.perf_counter()
    swept = sweep_shown(specs, store, workers)
    seconds = time.perf_counter() - before
    if json:
        print_json(_document(swept, store, seconds))
    else:
        _print(swept, store, seconds)
    if swept.failures:
        raise typer.Exit(1)


def sweep_shown(specs: Sequence[RunSpec], store: Store, workers: int | None) -> Swept:
    """Sweep with the plan and bars on the error stream; what stops it says how to go on."""
    try:
        with sweep_progress(workers) as watch:
            return sweep(specs, store, workers, watch)
    except StoreError as error:
        raise StoreError(f"{error}; {GOES_ON}") from error
    except KeyboardInterrupt:
        errors.print(f"bezoar: interrupted; {GOES_ON}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None


def _print(swept: Swept, store: Store, seconds: float) -> None:
    if swept.finished:
        _print_table(swept.runs)
    print_failures(swept.failures)
    console.print(f"{count(swept.plan.new, 'new run')} in {duration(seconds)}")
    console.print(f"Store: {store.path}", markup=False, soft_wrap=True)
    if swept.finished:
        # A report takes the folder around a store that is called so.
        folder = store.path.parent if store.path.name == "store" else store.path
        quoted = shlex.quote(str(folder))
        for line in (f"List it: bezoar runs {quoted}", f"Report: bezoar report {quoted}"):
            console.print(line, markup=False, soft_wrap=True)


def print_failures(failures: Sequence[Failure]) -> None:
    """Tell on the error stream which runs could not be, and why."""
    for failure in failures[:FAILURES]:
        fields = ", ".join(f"{field} = {text!r}" for field, text in _given(failure.spec).items())
        errors.print(f"failed: {failure.reason}\n  {fields}", markup=False, soft_wrap=True)
    if len(failures) > FAILURES:
        errors.print(f"… and {count(len(failures) - FAILURES, 'failure')} more; see --json")


def _given(spec: RunSpec) -> dict[str, str]:
    """The fields of a spec that are not as they are by default."""
    return {
        field: field_text(spec, field)
        for field in RunSpec.model_fields
        if getattr(spec, field) != RunSpec.model_fields[field].default
    }


def _print_table(runs: Sequence[StoredRun | Failure]) -> None:
    """Final accuracies by what the runs differ in; one such field makes the columns."""
    metric = _shown_metric(runs)
    found = {field: [field_text(run.spec, field) for run in runs] for field in FIELDS}
    found = {field: texts for field, texts in found.items() if len(set(texts)) > 1}
    across = _columns(found)
    down = [field for field in found if field != across] or ["aggregator"]
    table: dict[tuple[str, ...], dict[str, str]] = {}
    for place, run in enumerate(runs):
        row = tuple(field_text(run.spec, field) for field in down)
        column = found[across][place] if across else metric
        table.setdefault(row, {})[column] = _cell(run, metric)
    columns = list(dict.fromkeys(column for cells in table.values() for column in cells))
    heads = columns if not across or across in CHOICES else [f"{across} {c}" for c in columns]
    rows = [[*row, *(table[row].get(c, "–") for c in columns)] for row in _in_order(table)]
    about = METRICS[metric].title
    title = about[0].upper() + about[1:]
    print_table(title, [*down, *heads], rows[:ROWS], texts=len(down))
    if len(rows) > ROWS:
        console.print(f"… and {count(len(rows) - ROWS, 'row')} more")


def _in_order(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows with the same first text beside each other, texts in the order they came up."""
    found = list(rows)
    places = [list(dict.fromkeys(texts)) for texts in zip(*found, strict=True)]
    return sorted(found, key=lambda row: [p.index(t) for p, t in zip(places, row, strict=True)])


def _columns(found: Mapping[str, Sequence[str]]) -> str | None:
    """Of the fields that vary, with a text a run, that which makes the smallest table."""

    def size(field: str) -> int:
        rows = zip(*(texts for other, texts in found.items() if other != field), strict=True)
        return len(set(rows)) * len(set(found[field]))

    # Rows are rules; of the other fields, the later ones are the more usual columns.
    able = [field for field in list(found)[:0:-1] if len(set(found[field])) <= COLUMNS]
    return min(able, key=size, default=None)


def _shown_metric(runs: Sequence[StoredRun | Failure]) -> str:
    """Accuracy, or what was measured instead."""
    measured = [name for run in runs if isinstance(run, StoredRun) for name in run.metrics]
    return "accuracy" if "accuracy" in measured or not measured else measured[0]


def _cell(run: StoredRun | Failure, metric: str) -> str:
    if isinstance(run, Failure):
        return "failed"
    value = number(float(run.metrics[metric][-1])) if metric in run.metrics else "–"
    return f"{value} diverged" if run.diverged else value


def _document(swept: Swept, store: Store, seconds: float) -> dict[str, Any]:
    return {
        "store": str(store.path),
        "runs": [
            {
                "key": run.key,
                "spec": run.spec.model_dump(mode="json"),
                "diverged": run.diverged,
                "final": {name: float(values[-1]) for name, values in run.metrics.items()},
            }
            for run in swept.finished
        ],
        "failures": [_failure_document(failure) for failure in swept.failures],
        "new": swept.plan.new,
        "seconds": round(seconds, 3),
    }


def _plan_document(plan: SweepPlan, workers: int | None) -> dict[str, Any]:
    return {
        "finished": len(plan.finished),
        "new": plan.new,
        "groups": [
            {"runs": list(group), "iterations": next(iter(group.values())).iterations}
            for group in plan.groups
        ],
        "seconds": round(plan.seconds(workers), 1),
        "failures": [_failure_document(failure) for failure in plan.refused],
    }


def _failure_document(failure: Failure) -> dict[str, Any]:
    return {"spec": failure.spec.model_dump(mode="json"), "reason": failure.reason}
