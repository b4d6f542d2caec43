"""``bezoar runs``: what is in a store."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import filesize

from bezoar._errors import BezoarError
from bezoar._numbers import count
from bezoar.cli._screen import (
    console,
    print_json,
    print_page,
    print_path,
    print_problem,
    print_table,
)
from bezoar.experiments import (
    Store,
    StoredRun,
    check_export,
    export_runs,
    matches,
    read_conditions,
    spec_of,
    versions,
)
from bezoar.report import Table, run_document, run_page, runs_page


def list_runs(path: Path, conditions: Sequence[str], export: Path | None, json: bool) -> None:
    """Print, and export on request, the runs that meet the conditions."""
    if export:
        check_export(export)
    wanted = read_conditions(conditions)
    store = Store.find(path)
    problems: list[BezoarError] = []
    runs, there = [], 0
    for run in store.runs(problems.append):
        there += 1
        try:
            run.verify()
            if matches(spec_of(run), wanted):
                runs.append(run)
        except BezoarError as error:
            problems.append(error)
    runs.sort(key=_order)
    exported = export_runs(runs, export) if export else []
    if json:
        print_json([_document(run) for run in runs])
    else:
        found = f"{len(runs)} of {count(there, 'run')}" if wanted else count(len(runs), "run")
        print_page(runs_page(f"{found} in {store.path}", runs), wide=True)
        for file in exported:
            print_path("Exported", file)
    for problem in problems:
        print_problem(str(problem))


def show_run(path: Path, key: str, json: bool) -> None:
    """Print everything about a run but its curves."""
    run = Store.find(path).load(key)
    run.verify()
    if json:
        print_json(_document(run))
    else:
        print_page(run_page(run))


def remove_garbage(path: Path, outdated: bool, dry_run: bool, json: bool) -> None:
    """Remove broken and unneeded folders of a store, and print which."""
    store = Store.find(path)
    removals = store.gc(versions() if outdated else None, dry_run)
    if json:
        fields = ({"path": str(r.path), "reason": r.reason, "bytes": r.size} for r in removals)
        print_json(list(fields))
        return
    if removals:
        rows = (
            (str(r.path.relative_to(store.path)), r.reason, filesize.decimal(r.size))
            for r in removals
        )
        print_table(Table.of("", ("folder", "why", "size"), rows), wide=True)
    total = filesize.decimal(sum(gone.size for gone in removals))
    verb = "would be removed" if dry_run else "removed"
    console.print(f"{count(len(removals), 'folder')} {verb}, {total}")


def _order(run: StoredRun) -> tuple[Any, ...]:
    """A sorting key that puts runs that are compared beside each other."""
    spec = spec_of(run)
    names = (spec.dataset, spec.network, spec.partition, spec.attack, spec.aggregator)
    return (*map(str, names), spec.iterations, spec.seed, run.key)


def _document(run: StoredRun) -> dict[str, Any]:
    return run_document(run) | {"path": str(run.path), "provenance": run.provenance}
