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
) -> None:
    """Print a table; after its first column come numbers, unless told otherwise."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if numbers and place else "left")
    for row in rows:
        table.add_row(*row)
    console.print(f"[bold]{title}[/]")
    console.print(table)


@contextmanager
def training_progress(title: str) -> Iterator[Any]:
    """A bar on the error stream with the time left and the latest accuracy."""
    bar = Progress(
        TextColumn("{task.description}"),
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
    with bar:
        task = bar.add_task(title, total=None, accuracy="")

        def update(done: int, total: int, accuracy: Any) -> None:
            values = [float(value) for value in accuracy]
            shown = ""
            if len(values) == 1:
                shown = f"accuracy {values[0]:.3f}"
            elif values:
                shown = f"accuracy {min(values):.3f} … {max(values):.3f}"
            bar.update(task, completed=done, total=total, accuracy=shown)

        yield update
