"""Tables, progress and JSON on the terminal."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from bezoar.cli._streams import encodable
from bezoar.report import THRESHOLDS, Page, Table, Verdict

#: Wider than any table.
WIDE = 10_000

#: Columns of text are folded to this width before the rows of a table become blocks of lines.
FOLDED = 14

#: With more cells than this in a block, they share lines.
MANY = 12

#: Names of at most this width are not folded: columns without blanks.
NAME = 20

COLOURS: dict[Verdict, str] = {"holds": "green", "does not hold": "red", "undecided": "yellow"}

console = Console(highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, emoji=False)


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


def print_table(table: Table, wide: bool = False) -> None:
    """Print a table; if it is ``wide`` and there is no terminal, its lines are not broken.

    Numbers are never cut. Where there is no room for them beside each other, every row becomes a
    block of lines.
    """
    shown = partial(encodable, encoding=console.encoding)
    heads, *rows = ([shown(cell) for cell in row] for row in (table.columns, *table.rows))
    if table.title:
        console.print(Text(table.title, style="bold"))
    screen = Console(width=WIDE) if wide and not console.is_terminal else console
    numeric = [place > 0 and table.is_numeric(place) for place in range(len(table.columns))]
    widths = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    is_whole = [
        is_number or (width <= NAME and not any(" " in row[place] for row in rows))
        for place, (is_number, width) in enumerate(zip(numeric, widths, strict=True))
    ]
    least = [w if whole else min(w, FOLDED) for w, whole in zip(widths, is_whole, strict=True)]
    if sum(least) + 2 * len(least) > screen.width:
        _print_blocks(heads, rows)
        return
    grid = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head, is_number, whole in zip(heads, numeric, is_whole, strict=True):
        justify: Any = "right" if is_number else "left"
        grid.add_column(Text(head), justify=justify, no_wrap=whole, overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    screen.print(grid)


def _print_blocks(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table row by row: what names the row, then a line for each other cell.

    Many cells share their lines.
    """
    first, *others = heads
    for name, *cells in rows:
        console.print(Text(f"{first} {name}".strip(), style="bold"), overflow="fold")
        told = [f"{head}: {cell}" for head, cell in zip(others, cells, strict=True)]
        for line in [", ".join(told)] if len(told) > MANY else told:
            console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2), expand=False))


def print_meanings(columns: Sequence[str]) -> None:
    """Say below a table what its columns mean, if they are metrics."""
    from bezoar.training import METRICS

    for metric in METRICS.values():
        for name in {metric.name, metric.column}.intersection(columns):
            console.print(f"{name}: {metric.title}", style="dim")


def print_page(page: Page, folder: Path | None = None, wide: bool = False) -> None:
    """Print a page: title, caption, tables, claims, and the files in its folder."""
    console.print(Text(page.title, style="bold"), soft_wrap=wide)
    if page.caption:
        console.print(page.caption, markup=False)
    for table in page.tables:
        print_table(table, wide)
    if page.claims:
        console.print(Text("What the paper claims", style="bold"))
        console.print(Text(THRESHOLDS, style="dim"))
        grid = RichTable.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column()
        for claim in page.claims:
            verdict = Text(claim.verdict, style=f"bold {COLOURS[claim.verdict]}")
            grid.add_row(verdict, Text(claim.text))
            grid.add_row("", Text(claim.measured, style="dim"))
        console.print(grid)
    if folder:
        for image in page.images:
            print_path("Picture", folder / image.file)
        for file in page.data:
            print_path("Data", folder / file)


def print_problem(text: str) -> None:
    """Print on the error stream, in one line, what went wrong or was stopped."""
    errors.print(f"bezoar: {text}", markup=False, soft_wrap=True)


def print_path(what: str, path: Path) -> None:
    """Print where a file is, in one line that can be copied."""
    console.print(f"{what}: {path}", markup=False, soft_wrap=True)


class TrainingBars(Progress):
    """Progress bars; what ``above`` returns is shown above them."""

    above: Callable[[], Any] | None = None

    def get_renderables(self) -> Iterator[Any]:
        """What is shown, from above to below."""
        if self.above is not None:
            yield self.above()
        yield from super().get_renderables()


def training_bars() -> TrainingBars:
    """Progress bars on the error stream, with the time left and the text ``accuracy`` of a task."""
    return TrainingBars(
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
    """Show on the error stream what is being done, if its progress cannot be measured."""
    if not errors.is_terminal:
        yield
        return
    with errors.status(what):
        yield


@contextmanager
def time_bar(what: str) -> Iterator[Any]:
    """A bar on the error stream for work that has a budget of seconds."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bars:
        task = bars.add_task(what, total=None)

        def update(used: float, seconds: float, text: str) -> None:
            bars.update(task, completed=used, total=seconds, description=f"{what}: {text}")

        yield update
