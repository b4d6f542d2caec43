"""``bezoar reproduce``: figures and tables of the paper, and what becomes of its claims."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import typer

from bezoar import paper
from bezoar._errors import BezoarError
from bezoar._numbers import count
from bezoar._options import choose
from bezoar.cli._screen import (
    busy,
    console,
    errors,
    print_page,
    print_path,
    training_progress,
)
from bezoar.cli._sweep import print_failures, sweep_shown
from bezoar.experiments import RunSpec, Store, StoredRun, dataset_of
from bezoar.paper import (
    ALL_FIGURES,
    FIGURES,
    MNIST_FIGURES,
    Scale,
    TrainedComparison,
    TrainedFigure,
    Variant,
    Whose,
)
from bezoar.report import Page, check_markdown, write_report

#: What needs no runs of specs, and who writes it.
TABLES: dict[str, Callable[[Path, str], Page]] = {
    "fig9": paper.write_figure_9,
    "fig10": paper.write_figure_10,
    "table1": paper.write_table_1,
    "table2": paper.write_table_2,
}

#: What runs of specs are trained for, and who writes it if not as a figure.
TRAINED = FIGURES | {"threshold": paper.THRESHOLD_STUDY}
WRITERS = {"threshold": paper.write_thresholds}

STUDIES = {"theorems": paper.write_theorems, "contamination": paper.write_contamination}

NAMES = {"mnist": MNIST_FIGURES, "all": ALL_FIGURES} | {
    name: (name,) for name in (*TRAINED, *TABLES, *STUDIES)
}


def read_variant(given: Mapping[str, Any]) -> Variant:
    """The variant that the options of the command ask for."""
    quick, scale = given["quick"], given["scale"]
    if quick and scale not in (None, "quick"):
        raise BezoarError(f"quick: it is a scale, found the scale {scale!r} too; give one of them")
    scales: dict[str, Scale] = {name: name for name in get_args(Scale)}
    settings: dict[str, Whose] = {name: name for name in get_args(Whose)}
    return Variant(
        choose("scale", "quick" if quick else scale or "paper", scales),
        choose("setting", given["setting"], settings),
        given["iterations"],
        given["device"],
    )


def reproduce(given: Mapping[str, Any]) -> None:
    """Reproduce what was asked for, each figure and table in a folder of its own.

    The runs of all figures are trained in one sweep, into a store that the next call goes on with.
    """
    variant, markdown = read_variant(given), given["markdown"]
    out, seeds, workers = given["out"], given["seeds"], given["workers"]
    if markdown:
        check_markdown(markdown)
    chosen = [part for name in given["figures"] for part in choose("figure", name, NAMES)]
    wanted = list(dict.fromkeys(chosen))
    commands = {name: _command(name, seeds, variant) for name in wanted}
    figures = _train(wanted, commands, seeds, variant, workers, Store(out / "store"))
    pages = []
    for name in wanted:
        made, command = figures.get(name), commands[name]
        folder = out / (made.name if made else name)
        if name in STUDIES:
            with training_progress(name.capitalize()) as progress:
                page = STUDIES[name](folder, command, variant.iterations, workers, progress)
        elif name in TABLES or made:
            with busy(f"Drawing {name}"):
                write = WRITERS.get(name, paper.write_figure)
                page = write(folder, made) if made else TABLES[name](folder, command)
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
    if pages and markdown:
        reproduced = [TRAINED[name] for name in wanted if name in TRAINED]
        print_path("Page", paper.write_record(markdown, out, reproduced))
    if len(pages) < len(wanted):
        raise typer.Exit(1)


def _train(
    wanted: Sequence[str],
    commands: Mapping[str, str],
    seeds: int,
    variant: Variant,
    workers: int | None,
    store: Store,
) -> dict[str, TrainedFigure]:
    """Train all figures among the names together; figures with failed runs are left out."""
    places = {
        name: [(part, part.runs(seeds)) for part in TRAINED[name].comparisons(variant)]
        for name in wanted
        if name in TRAINED
    }
    every = (spec for parts in places.values() for _, several in parts for _, spec in several)
    specs = list(dict.fromkeys(every))
    runs: dict[RunSpec, StoredRun] = {}
    if specs:
        swept = sweep_shown(specs, store, workers)
        print_failures(swept.failures)
        found = zip(specs, swept.runs, strict=True)
        runs = {spec: run for spec, run in found if isinstance(run, StoredRun)}
    figures = {}
    for name, parts in places.items():
        of_figure = [spec for _, several in parts for _, spec in several]
        if failed := sum(spec not in runs for spec in of_figure):  # half a figure would mislead
            told = f"{count(failed, 'run')} of {len(of_figure)} failed"
            errors.print(f"{name}: not drawn, as {told}", markup=False)
            continue
        trained = [
            TrainedComparison(
                part, several, [runs[s] for _, s in several], dataset_of(several[0][1])
            )
            for part, several in parts
        ]
        figures[name] = TrainedFigure(TRAINED[name], variant, trained, commands[name])
    return figures


def _command(name: str, seeds: int, variant: Variant) -> str:
    """The command that makes a figure or table again, without options that change nothing."""
    options: dict[str, object] = {}
    if name in TRAINED:
        options = {"seeds": seeds} if seeds > 1 else {}
        options |= paper.shown_variant(TRAINED[name], variant)
        options |= {"device": variant.device} if variant.device != "cpu" else {}
    if variant.iterations is not None and name not in TABLES:
        options["iterations"] = variant.iterations
    given = [text for option, value in options.items() for text in (f"--{option}", str(value))]
    return " ".join(["bezoar reproduce", name, *given])


def _print_verdicts(pages: Sequence[Page], seeds: int) -> None:
    verdicts = Counter(claim.verdict for page in pages for claim in page.claims)
    if verdicts:
        total, failing = count(sum(verdicts.values()), "claim"), verdicts["does not hold"]
        console.print(
            f"{total} of the paper at {count(seeds, 'seed')}: {verdicts['holds']} hold, "
            f"{failing} {'does' if failing == 1 else 'do'} not, {verdicts['undecided']} undecided."
        )
