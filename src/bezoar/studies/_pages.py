"""Studies as pages: a picture, a table, what was found; and several of them in Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from bezoar._files import write_whole
from bezoar._numbers import with_spread
from bezoar.report import (
    LEAD,
    Image,
    Look,
    Page,
    Table,
    axis_of,
    check_markdown,
    look,
    markdown_pictures,
    page_folders,
    pictures,
    plot_grid,
    save_figure,
)
from bezoar.studies._study import ITERATIONS, METRIC, SAMPLES, SEEDS, Results, Study, label

#: What all studies have in common.
ABOUT = (
    f"Softmax regression on a part of MNIST: {SAMPLES:,} images, {ITERATIONS} iterations and "
    f"{SEEDS} seeds, unless a command says otherwise. Tables have the test accuracy of the regular "
    "agents' own models, its mean and standard deviation over the seeds; pictures show means and "
    "ranges. A rule is ahead of another where the seeds can carry it (Student's t, 95 %) and by "
    f"more than {LEAD}. A/ξ is the disturbance over the heterogeneity in the runs of the weighted "
    "mean, on average over the start and the end."
)

#: The most plots beside each other, and the width and height of one in inches.
ACROSS, WIDTH, HEIGHT = 3, 3.6, 2.8

#: The width of an entry of the legend, in inches.
ENTRY = 2.0


def write_study(folder: Path, study: Study, results: Results, command: str) -> Page:
    """Write a study into a folder: its page, a picture, and its table for machines and people."""
    table = _table(results, study.axis)
    found = " ".join(study.answer(results))
    [picture] = _picture(folder / f"{study.name}.png", study, results)
    alt = f"Accuracy of each rule by {study.axis}, a plot for each of: {', '.join(results.panels)}."
    return Page(
        name=study.name,
        title=study.title,
        caption=f"{study.question} {found}",
        command=command,
        images=(Image(file=picture.name, alt=f"{alt} {found}"),),
        data=(*table.save(folder / study.name), *_runs(results).save(folder / "runs")),
        tables=(table,),
    ).save(folder)


def write_studies(path: Path, results: Path, names: Iterable[str]) -> Path:
    """Write studies as one Markdown page, with pictures in a folder beside it.

    Args:
        path: where to.
        results: the folder that has a folder for each study.
        names: the studies, in their order; those that the folder does not have are left out.
    """
    check_markdown(path)
    blocks = ["# Studies", ABOUT]
    folders = page_folders(results)
    for page in (Page.load(results / name) for name in names if results / name in folders):
        blocks += [f"## {page.title}", page.caption]
        blocks += markdown_pictures(page, results / page.name, path)
        blocks += [table.markdown().rstrip() for table in page.tables]
        blocks.append(f"`{page.command}`")
    return write_whole(path, ("\n\n".join(blocks) + "\n").encode())


def _table(results: Results, axis: str) -> Table:
    """A row for each panel and place, a column for each rule: mean and deviation over the seeds."""
    rows = []
    for panel in results.panels:
        for place in results.places(panel):
            found = (results.at(panel, place, rule) for rule in results.rules)
            cells = (with_spread(ends.tolist(), 3) if len(ends) else "–" for ends in found)
            rows.append(
                (panel, place.replace("\n", ", "), f"{results.ratio(panel, place):.2g}", *cells)
            )
    columns = ("", axis, "A/ξ", *map(label, results.rules))
    return Table.of("Test accuracy of the regular agents' own models", columns, rows)


def _runs(results: Results) -> Table:
    """A row for each case and seed, for those who want to look at the numbers in another way."""
    rows = [
        (case.panel, case.place, case.rule, str(seed), repr(float(end)), repr(float(ratio)))
        for case, *several in zip(results.cases, results.finals, results.ratios, strict=True)
        for seed, (end, ratio) in enumerate(zip(*several, strict=True))
    ]
    return Table.of("Runs", ("panel", "place", "rule", "seed", METRIC, "A/ξ"), rows)


def _looks(rules: Sequence[str]) -> dict[str, Look]:
    """How each rule is drawn: the options and what is done before it make the line another."""
    found = {}
    for rule in rules:
        name, _, options = rule.partition(":")
        plain = look(name.rpartition("+")[2])
        lined = {"line": ":"} if "+" in name else {"line": "--"} if options else {}
        found[rule] = replace(plain, label=label(rule), **lined)
    return found


def _picture(path: Path, study: Study, results: Results) -> list[Path]:
    """Save final accuracies along the axis, a plot for each panel; bars are ranges over seeds."""
    panels, looks = results.panels, _looks(results.rules)
    across = min(ACROSS, len(panels))
    rows = ceil(len(panels) / across)
    with pictures() as plt:
        plt.rcParams["savefig.dpi"] = 100
        figure, grid = plot_grid(plt, rows, [1.0] * across, WIDTH, HEIGHT, 0.6)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for panel, axes in zip(panels, grid.flat, strict=False):
            if axes is not grid.flat[0]:
                axes.sharey(grid.flat[0])
            for number, (rule, drawn) in enumerate(looks.items()):
                _curve(axes, results, panel, rule, drawn, 0.05 * (number - len(looks) / 2))
            axes.set_xticks(range(len(results.places(panel))), results.places(panel))
            axes.set_title(panel, fontweight="bold")
            axes.set_xlabel(study.axis)
        for row in grid:
            row[0].set_ylabel(axis_of(METRIC).replace(" (", "\n("))
        handles, labels = grid.flat[0].get_legend_handles_labels()
        columns = max(1, int(figure.get_figwidth() / ENTRY))
        figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)))
        return save_figure(figure, path)


def _curve(axes: Any, results: Results, panel: str, rule: str, drawn: Look, shift: float) -> None:
    """Draw the means of a rule, with the range over the seeds; ``shift`` keeps bars apart."""
    several = [results.at(panel, place, rule) for place in results.places(panel)]
    where = [number for number, ends in enumerate(several) if len(ends)]
    ends = np.reshape([several[number] for number in where], (len(where), results.finals.shape[1]))
    means = ends.mean(axis=1)
    # The mean of equal numbers may be beyond them by rounding.
    bars = np.maximum(0.0, [means - ends.min(axis=1), ends.max(axis=1) - means])
    axes.errorbar(
        np.add(where, shift),
        means,
        yerr=bars,
        linestyle=drawn.line,
        color=drawn.colour,
        marker=drawn.marker,
        markersize=5,
        linewidth=1.2,
        elinewidth=0.8,
        label=drawn.label,
    )
