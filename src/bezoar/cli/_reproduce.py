"""``bezoar reproduce``: figures and tables of the paper, and what becomes of its claims."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer

from bezoar import paper
from bezoar._options import choose
from bezoar.cli._screen import (
    busy,
    console,
    count,
    errors,
    print_page,
    print_path,
    training_progress,
)
from bezoar.cli._sweep import print_failures, sweep_shown
from bezoar.experiments import Failure, RunSpec, Store, StoredRun
from bezoar.paper import MNIST_FIGURES, SETTINGS, TrainedFigure
from bezoar.report import Page, write_report

#: What needs no runs of specs, and who writes it.
TABLES: dict[str, Callable[[Path, str], Page]] = {
    "fig9": paper.write_figure_9,
    "fig10": paper.write_figure_10,
    "table1": paper.write_table_1,
    "table2": paper.write_table_2,
}
STUDIES = {"theorems": paper.write_theorems, "contamination": paper.write_contamination}

NAMES = {"mnist": MNIST_FIGURES} | {name: (name,) for name in (*SETTINGS, *TABLES, *STUDIES)}


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
    commands = {name: _command(name, seeds, iterations, quick) for name in wanted}
    figures = _train(wanted, commands, seeds, iterations, quick, workers, Store(out / "store"))
    pages = []
    for name in wanted:
        folder, command = out / name, commands[name]
        if name in STUDIES:
            with training_progress(name.capitalize()) as progress:
                page = STUDIES[name](folder, command, iterations, workers, progress)
        elif name in TABLES or name in figures:
            with busy(f"Drawing {name}"):
                made = figures.get(name)
                page = paper.write_figure(folder, made) if made else TABLES[name](folder, command)
        else:
            continue
        console.rule(style="dim")
        print_page(page, folder)
        pages.append(page)
    _print_verdicts(pages, seeds)
    if pages:
        with busy("Writing the report"):
            path = write_report(out)
        print_path("Report", path)
    if len(pages) < len(wanted):
        raise typer.Exit(1)


def _train(
    wanted: Sequence[str],
    commands: Mapping[str, str],
    seeds: int,
    iterations: int | None,
    quick: bool,
    workers: int | None,
    store: Store,
) -> dict[str, TrainedFigure]:
    """Train all figures among the names together; figures with failed runs are left out."""
    settings = {n: SETTINGS[n].shortened(quick, iterations) for n in wanted if n in SETTINGS}
    places = {name: setting.runs(seeds) for name, setting in settings.items()}
    specs = list(dict.fromkeys(spec for several in places.values() for _, spec in several))
    runs: dict[RunSpec, StoredRun | Failure] = {}
    if specs:
        swept = sweep_shown(specs, store, workers)
        print_failures(swept.failures)
        runs = dict(zip(specs, swept.runs, strict=True))
    figures = {}
    for name, setting in settings.items():
        found = [runs[spec] for _, spec in places[name]]
        finished = [run for run in found if isinstance(run, StoredRun)]
        if len(finished) < len(found):  # half a figure would mislead
            failed = count(len(found) - len(finished), "run")
            errors.print(f"{name}: not drawn, as {failed} of {len(found)} failed", markup=False)
        else:
            figures[name] = TrainedFigure(name, setting, places[name], finished, commands[name])
    return figures


def _command(name: str, seeds: int, iterations: int | None, quick: bool) -> str:
    """The command that makes a figure or table again, without options that change nothing."""
    options = []
    if name in SETTINGS:
        options += ["--seeds", str(seeds)] if seeds > 1 else []
        options += ["--quick"] if quick else []
    if iterations is not None and name not in TABLES:
        options += ["--iterations", str(iterations)]
    return " ".join(["bezoar reproduce", name, *options])


def _print_verdicts(pages: Sequence[Page], seeds: int) -> None:
    verdicts = Counter(claim.verdict for page in pages for claim in page.claims)
    if verdicts:
        total = count(sum(verdicts.values()), "claim")
        console.print(
            f"{total} of the paper at {count(seeds, 'seed')}: {verdicts['holds']} hold, "
            f"{verdicts['does not hold']} do not, {verdicts['undecided']} undecided."
        )
