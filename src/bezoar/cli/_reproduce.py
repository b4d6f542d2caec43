"""``bezoar reproduce``: figures and tables of the paper, and what becomes of its claims."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from bezoar._registry import choose
from bezoar.cli._screen import busy, console, count, errors, print_table
from bezoar.cli._sweep import print_failures, sweep_shown
from bezoar.cli._verify import contamination, theorems
from bezoar.experiments import (
    MNIST,
    SETTINGS,
    Cell,
    Failure,
    RunSpec,
    Setting,
    Store,
    StoredRun,
    distinct_specs,
    first_seeds,
)
from bezoar.experiments._claims import Outcome
from bezoar.report import (
    Reproduced,
    Summary,
    write_figure,
    write_figure_9,
    write_figure_10,
    write_report,
    write_table_1,
    write_table_2,
)

#: What needs no runs, or makes its own: written into a folder, given the command that asks for it.
Maker = Callable[[Path, str], Summary]

COLOURS: dict[Outcome, str] = {"holds": "green", "does not hold": "red", "undecided": "yellow"}

NAMES = {"mnist": MNIST} | {
    name: (name,)
    for name in (
        *SETTINGS,
        "fig9",
        "fig10",
        "table1",
        "table2",
        "theorems",
        "contamination",
    )
}


def reproduce(
    names: Sequence[str],
    out: Path,
    seeds: int = 1,
    iterations: int | None = None,
    quick: bool = False,
    workers: int | None = None,
) -> None:
    """Reproduce what is named and save it under ``out``, each in a folder of its own.

    The runs of all figures are trained in one sweep, into a store that the next call goes on with.
    """
    chosen = [part for name in names for part in choose("figure", name, NAMES)]
    wanted = list(dict.fromkeys(chosen))
    settings = {
        name: SETTINGS[name].shortened(quick, iterations) for name in wanted if name in SETTINGS
    }
    cells = {name: setting.cells(first_seeds(seeds)) for name, setting in settings.items()}
    runs = _train(cells, Store(out / "store"), workers) if cells else {}
    makers = _makers(iterations, workers)
    shown = []
    for name in wanted:
        command = _command(name, seeds, iterations, quick)
        if name not in SETTINGS:
            summary = makers[name](out / name, command)
        elif made := _whole(name, settings[name], cells[name], runs, command):
            with busy(f"Drawing {name}"):
                summary = write_figure(out / name, made)
        else:
            continue
        _print(summary, out)
        shown.append(summary)
    _print_tally(shown, seeds)
    if shown:
        with busy("Writing the report"):
            path = write_report(out)
        _print_path("Report", path)
    if len(shown) < len(wanted):
        raise typer.Exit(1)


def _makers(iterations: int | None, workers: int | None) -> Mapping[str, Maker]:
    return {
        "fig9": partial(_busily, write_figure_9),
        "fig10": partial(_busily, write_figure_10),
        "table1": partial(_busily, write_table_1),
        "table2": partial(_busily, write_table_2),
        "theorems": partial(theorems, iterations=iterations, workers=workers),
        "contamination": partial(contamination, iterations=iterations, workers=workers),
    }


def _busily(maker: Maker, folder: Path, command: str) -> Summary:
    with busy(f"Making {folder.name}"):
        return maker(folder, command)


def _train(
    cells: Mapping[str, Sequence[Cell]], store: Store, workers: int | None
) -> dict[RunSpec, StoredRun | Failure]:
    """Have the runs of several figures: what can be trained together is."""
    specs = distinct_specs(cells.values())
    swept = sweep_shown(specs, store, workers)
    print_failures(swept.failures)
    return dict(zip(specs, swept.runs, strict=True))


def _whole(
    name: str,
    setting: Setting,
    cells: Sequence[Cell],
    runs: Mapping[RunSpec, StoredRun | Failure],
    command: str,
) -> Reproduced | None:
    """What was run for a figure, unless runs failed: half a figure would mislead."""
    found = [runs[cell.spec] for cell in cells]
    finished = [run for run in found if isinstance(run, StoredRun)]
    if len(finished) < len(found):
        failed = count(len(found) - len(finished), "run")
        errors.print(f"{name}: not drawn, as {failed} of {len(found)} failed", markup=False)
        return None
    return Reproduced(name, setting, cells, finished, command)


def _command(name: str, seeds: int, iterations: int | None, quick: bool) -> str:
    """What makes a figure or table again; options that change nothing are left out."""
    options = []
    if name in SETTINGS:
        options += ["--seeds", str(seeds)] if seeds > 1 else []
        options += ["--quick"] if quick else []
    if iterations is not None and name in (*SETTINGS, "theorems", "contamination"):
        options += ["--iterations", str(iterations)]
    return " ".join(["bezoar reproduce", name, *options])


def _print(summary: Summary, out: Path) -> None:
    console.rule(f"[bold]{summary.title}[/]", align="left", style="dim")
    for table in summary.tables:
        print_table(table.title, table.columns, table.rows)
    console.print(summary.caption, markup=False)
    if summary.claims:
        _print_claims(summary)
    for image in summary.images:
        _print_path("Picture", out / summary.name / image.file)
    for file in summary.data:
        _print_path("Data", out / summary.name / file)
    console.print()


def _print_claims(summary: Summary) -> None:
    """The claims of the paper with their verdicts and the numbers behind them."""
    console.print("\n[bold]What the paper claims[/]")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for claim in summary.claims:
        verdict = Text(claim.verdict, style=f"bold {COLOURS[claim.verdict]}")
        grid.add_row(verdict, Text(claim.text))
        grid.add_row("", Text(claim.measured, style="dim"))
    console.print(grid)


def _print_tally(summaries: Sequence[Summary], seeds: int) -> None:
    verdicts = Counter(claim.verdict for summary in summaries for claim in summary.claims)
    if verdicts:
        total = count(sum(verdicts.values()), "claim")
        console.print(
            f"{total} of the paper at {count(seeds, 'seed')}: {verdicts['holds']} hold, "
            f"{verdicts['does not hold']} do not, {verdicts['undecided']} undecided."
        )


def _print_path(what: str, path: Path) -> None:
    console.print(f"{what}: {path}", markup=False, soft_wrap=True)
