"""Tables, progress and JSON on the terminal."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from bezoar._numbers import count as count
from bezoar._numbers import duration as duration
from bezoar._numbers import number as number

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def print_json(document: Any) -> None:
    """Print a document as JSON; numbers that are not finite become null."""
    print(json.dumps(_clean(document), indent=2, allow_nan=False))


def _clean(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: bool = True,
    texts: int = 1,
) -> None:
    """Print a table; after its first columns, or so many, come numbers, unless told otherwise."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if numbers and place >= texts else "left")
    for row in rows:
        table.add_row(*row)
    console.print(f"[bold]{title}[/]")
    console.print(table)


def training_bars() -> Progress:
    """Bars on the error stream, with the time left and the latest accuracy.

    Tasks have a field ``accuracy``, a text.
    """
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[accuracy]}"),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


def accuracies(values: Sequence[float]) -> str:
    """The accuracies of runs as a short text."""
    if not values:
        return ""
    if len(values) == 1:
        return f"accuracy {values[0]:.3f}"
    return f"accuracy {min(values):.3f} … {max(values):.3f}"


@contextmanager
def training_progress(title: str) -> Iterator[Any]:
    """One bar for a training."""
    with training_bars() as bars:
        task = bars.add_task(title, total=None, accuracy="")

        def update(done: int, total: int, accuracy: Any) -> None:
            shown = accuracies([float(value) for value in accuracy])
            bars.update(task, completed=done, total=total, accuracy=shown)

        yield update


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show on the error stream what is being done, where it takes seconds and cannot be counted."""
    if not errors.is_terminal:
        yield
        return
    with errors.status(what):
        yield
