"""``bezoar runs``: what is in a store."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bezoar._errors import BezoarError
from bezoar.cli._screen import console, count, errors, number, print_json, print_table
from bezoar.experiments._rows import (
    FORMAL,
    check_export,
    export_runs,
    field_text,
    matches,
    read_conditions,
)
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._store import Store, StoredRun

#: The order of the columns; other fields follow.
FIRST = ("network", "partition", "attack", "poisoned", "aggregator", "seed")

#: Digits of a key in the table.
SHORT = 8

#: As wide as any table.
WIDE = 10_000

#: Seconds of the units that ages are told in.
UNITS = {"d": 86400, "h": 3600, "min": 60}


def list_runs(path: Path, conditions: Sequence[str], export: Path | None, json: bool) -> None:
    """Print, and export on request, the runs that meet the conditions."""
    if export:
        check_export(export)
    wanted = read_conditions(conditions)
    store = Store.find(path)
    problems: list[BezoarError] = []
    found = [run for run in store.runs(problems.append) if matches(run.spec, wanted)]
    runs = _undamaged(sorted(found, key=_order), problems)
    if export:
        export_runs(runs, export)
    if json:
        print_json([_document(run) for run in runs])
    else:
        _print_runs(store, runs)
        if export:
            console.print(f"Exported: {export}", markup=False, soft_wrap=True)
    for problem in problems:
        errors.print(f"bezoar: {problem}", markup=False, soft_wrap=True)


def show_run(path: Path, key: str, json: bool) -> None:
    """Print everything about a run but its curves."""
    run = Store.find(path).load(key)
    run.verify()
    document = _document(run)
    if json:
        print_json(document)
        return
    fields = [[field, field_text(run.spec, field)] for field in RunSpec.model_fields]
    print_table(run.key, ["field", "value"], fields, numbers=False)
    final = [[name, number(value)] for name, value in document["final"].items()]
    title = f"After {run.spec.iterations} iterations" + (", diverged" if run.diverged else "")
    print_table(title, ["metric", "value"], final)
    facts = [[key, str(value)] for key, value in _flat(run.provenance).items()]
    print_table("Where and when", ["what", "found"], facts, numbers=False)


def clear_up(path: Path, outdated: bool, dry_run: bool, json: bool) -> None:
    """Remove what nobody needs, and print what it was."""
    store = Store.find(path)
    removals = store.gc(outdated, dry_run)
    if json:
        print_json(
            [
                {"path": str(gone.path), "reason": gone.reason, "bytes": gone.size}
                for gone in removals
            ]
        )
        return
    if removals:
        rows = [
            [str(gone.path.relative_to(store.path)), gone.reason, _size(gone.size)]
            for gone in removals
        ]
        _print_wide(["folder", "why", "size"], rows)
    total = _size(sum(gone.size for gone in removals))
    verb = "would be removed" if dry_run else "removed"
    console.print(f"{count(len(removals), 'folder')} {verb}, {total}")


def _undamaged(runs: Sequence[StoredRun], problems: list[BezoarError]) -> list[StoredRun]:
    """The runs whose files are as they were written; what is wrong with others is noted."""
    sound = []
    for run in runs:
        try:
            run.verify()
            sound.append(run)
        except BezoarError as error:
            problems.append(error)
    return sound


def _order(run: StoredRun) -> tuple[Any, ...]:
    """Runs that are compared beside each other."""
    spec = run.spec
    names = (spec.dataset, spec.network, spec.partition, spec.attack, spec.aggregator)
    return (*map(str, names), spec.iterations, spec.seed, run.key)


def _print_runs(store: Store, runs: Sequence[StoredRun]) -> None:
    """A table of what the runs differ in, below a line of what they have in common."""
    console.print(f"{count(len(runs), 'run')} in {store.path}", markup=False, soft_wrap=True)
    if not runs:
        return
    fields = [*FIRST, *(f for f in RunSpec.model_fields if f not in (*FIRST, *FORMAL))]
    found = {field: [field_text(run.spec, field) for run in runs] for field in fields}
    shared = {field: texts[0] for field, texts in found.items() if len(set(texts)) == 1}
    common = ", ".join(f"{field} {text}" for field, text in shared.items())
    console.print(f"{'All with' if len(runs) > 1 else 'With'} {common}.", markup=False)
    columns = {field: texts for field, texts in found.items() if field not in shared}
    columns |= {
        "accuracy": [number(_final(run).get("accuracy", nan)) for run in runs],
        "age": [_age(run.provenance.get("ended")) for run in runs],
    }
    if any(run.diverged for run in runs):
        columns["diverged"] = ["yes" if run.diverged else "" for run in runs]
    keys = [run.key[:SHORT] for run in runs]
    _print_wide(["key", *columns], list(zip(keys, *columns.values(), strict=True)))


def _print_wide(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of which nothing is cut off, least of all the first column."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, no_wrap=place == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    # What goes to a file or a pipe need not fit a terminal.
    screen = console if console.is_terminal else Console(width=WIDE, highlight=False)
    screen.print(table)


def _document(run: StoredRun) -> dict[str, Any]:
    return {
        "key": run.key,
        "path": str(run.path),
        "spec": run.spec.model_dump(mode="json"),
        "diverged": run.diverged,
        "final": _final(run),
        "provenance": run.provenance,
    }


def _final(run: StoredRun) -> dict[str, float]:
    """The last measurements."""
    return {name: float(values[-1]) for name, values in run.metrics.items() if len(values)}


def _flat(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Tables within tables as dotted names."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat


def _age(ended: Any) -> str:
    """How long ago a moment was; a dash where it is not told."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(ended)).total_seconds()
    except (TypeError, ValueError):
        return "–"
    for unit, length in UNITS.items():
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return "now"


def _size(count: int) -> str:
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}"
