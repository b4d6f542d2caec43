"""``bezoar sweep``."""

import shlex
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import typer

from bezoar._errors import LostRankError
from bezoar._numbers import count, duration
from bezoar.cli._progress import Bars, plan_text
from bezoar.cli._screen import (
    console,
    errors,
    print_json,
    print_meanings,
    print_path,
    print_problem,
    print_table,
    training_bars,
)
from bezoar.cli._workers import WorkersTable
from bezoar.experiments import (
    ExecutorError,
    Failure,
    Plan,
    RunSpec,
    Store,
    StoreError,
    Swept,
    Trainer,
    executor_on,
    field_text,
    follow,
    is_follower,
    launched,
    leading,
    make_plan,
    read_sweep,
    sweep,
)
from bezoar.report import data_notes, results_table, run_document

#: Failures told in full at the most.
FAILURES = 20

IN_FULL = "; see --json"

GOES_ON = "what is finished is kept, and the same command goes on from there"


def run_sweep(
    path: Path, where: Path, workers: int | None, on: str | None, dry_run: bool, json: bool
) -> None:
    """Train those runs of a sweep that the store does not have yet, or only show the plan."""
    store = Store(where)
    if has_followed(workers, store):
        return
    specs = read_sweep(path)
    if dry_run:
        plan = make_plan(specs, store)
        if json:
            print_json(_plan_document(plan, workers))
        else:
            console.print(plan_text(plan, workers))
            print_failures(plan.refused, IN_FULL)
        return
    before = time.perf_counter()
    swept = sweep_shown(specs, store, workers, on)
    seconds = time.perf_counter() - before
    if json:
        print_json(_document(swept, store, seconds))
    else:
        _print(swept, store, seconds)
    if swept.failures:
        raise typer.Exit(1)


def sweep_shown(
    specs: Sequence[RunSpec], store: Store, workers: int | None, on: str | None = None
) -> Swept:
    """Sweep with progress on the error stream; if it is stopped, say how to continue.

    The work is done ``on`` other processes or machines; see :func:`executor_on`.
    """
    try:
        if on is not None:
            with executor_on(on, workers) as (executor, at_once), training_bars() as bars:
                return sweep(specs, store, executor, WorkersTable(bars), at_once=at_once)
        with trainer_here(workers, store) as trainer, training_bars() as bars:
            bar = Bars(bars, workers)
            return sweep(specs, store, watch=bar, workers=workers, trainer=trainer)
    except (StoreError, ExecutorError) as error:
        raise type(error)(f"{error}; {GOES_ON}") from error
    except KeyboardInterrupt:
        print_problem(f"interrupted; {GOES_ON}")
        raise typer.Exit(130) from None


def has_followed(workers: int | None, store: Store | None) -> bool:
    """Whether this process is a rank that follows the first one, and has done so to the end."""
    if not is_follower():
        return False
    try:
        follow(workers, store)
    except LostRankError:  # of which the first rank tells
        raise typer.Exit(1) from None
    return True


def trainer_here(
    workers: int | None, store: Store | None
) -> AbstractContextManager[Trainer | None]:
    """Who trains if it is not this process alone: all ranks, if ``torchrun`` started several."""
    return leading(workers, store) if launched() else nullcontext()


def _print(swept: Swept, store: Store, seconds: float) -> None:
    if swept.finished:
        table = results_table(swept.runs)
        print_table(table)
        print_meanings(table.columns)
        for note in data_notes(swept.finished):
            console.print(note, markup=False)
    print_failures(swept.failures, IN_FULL)
    console.print(f"{count(swept.plan.new, 'new run')} in {duration(seconds)}")
    print_path("Store", store.path)
    if swept.finished:
        # A report takes the folder around a store that is called so.
        folder = store.path.parent if store.path.name == "store" else store.path
        quoted = shlex.quote(str(folder))
        for line in (f"List it: bezoar runs {quoted}", f"Report: bezoar report {quoted}"):
            console.print(line, markup=False, soft_wrap=True)


def print_failures(failures: Sequence[Failure], in_full: str = "") -> None:
    """Print on the error stream which runs failed, why, and their fields that are not usual.

    If there are too many, ``in_full`` says where all of them are.
    """
    for failure in failures[:FAILURES]:
        spec, fields = failure.spec, RunSpec.model_fields
        given = (name for name in fields if name in spec.model_fields_set)
        changed = (n for n in given if str(getattr(spec, n)) != str(fields[n].default))
        told = ", ".join(f"{name} = {field_text(spec, name)!r}" for name in changed)
        errors.print(f"failed: {failure.reason}\n  {told}", markup=False, soft_wrap=True)
    if len(failures) > FAILURES:
        errors.print(f"… and {count(len(failures) - FAILURES, 'failure')} more{in_full}")


def _document(swept: Swept, store: Store, seconds: float) -> dict[str, Any]:
    return {
        "store": str(store.path),
        "runs": [run_document(run) for run in swept.finished],
        "failures": [_failure_document(failure) for failure in swept.failures],
        "new": swept.plan.new,
        "seconds": round(seconds, 3),
    }


def _plan_document(plan: Plan, workers: int | None) -> dict[str, Any]:
    return {
        "finished": len(plan.finished),
        "new": plan.new,
        "groups": [
            {"runs": list(group), "iterations": next(iter(group.values())).spec.iterations}
            for group in plan.groups
        ],
        "seconds": round(plan.seconds(workers), 1),
        "failures": [_failure_document(failure) for failure in plan.refused],
    }


def _failure_document(failure: Failure) -> dict[str, Any]:
    return {"spec": failure.spec.model_dump(mode="json"), "reason": failure.reason}
