"""A figure of the paper as a folder: pictures, the data behind them, and a page."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from bezoar._files import write_whole
from bezoar.paper._claims import judge
from bezoar.paper._comparisons import PARTITION_TITLES
from bezoar.paper._figure_claims import CLAIMS
from bezoar.paper._figures import gradients_figure, partitions_figure
from bezoar.paper._recipes import DATASET_TITLES
from bezoar.paper._texts import SHOWN, alternative, caption, note, title
from bezoar.paper._trained import TrainedComparison, TrainedFigure
from bezoar.report import Image, JudgedClaim, Page, Table, axis_of, ends_table, panels_figure

#: Columns of the data that say which run a line is of.
COLUMNS = (
    *("figure", "scale", "setting", "dataset", "network", "partition", "rule", "seed"),
    "iteration",
)


def write_figure(folder: Path, made: TrainedFigure) -> Page:
    """Draw a figure, write the data behind it, judge the paper's claims about it."""
    images, panels, claims = [], [], []
    for part in made.parts:
        dataset = f"-{part.recipe.dataset}" if len(made.parts) > 1 else ""
        alt = alternative(made, part)
        drawn = _draw(folder / f"{made.name}{dataset}", made, part)
        images += [Image(file=path.name, alt=alt) for path in drawn]
        panels += [
            replace(panel, title=f"{made.about(part)}{panel.title}")
            for panel in part.panels(part.comparison.figure.panel_title)
        ]
        on = f"on {DATASET_TITLES[part.recipe.dataset]}" if made.about(part) else ""
        claims += judged_claims(part, on)
    write_whole(folder / f"{made.name}.csv", data_text(made).encode())
    return Page(
        name=made.name,
        title=title(made),
        caption=caption(made),
        command=made.command,
        images=tuple(images),
        data=(f"{made.name}.csv",),
        tables=tuple(table for part in made.parts for table in _tables(made, part)),
        claims=tuple(claims),
        metrics=tuple(map(made.parts[0].recipe.metric, made.figure.metrics)),
        panels=tuple(panels),
    ).save(folder)


def judged_claims(
    part: TrainedComparison, remark: str, involving: tuple[str, ...] = ()
) -> list[JudgedClaim]:
    """What the paper claims of a comparison's figure, judged by its runs.

    Every claim tells the remark, if there is one. If some rules are given, only what is claimed of
    one of them is judged.
    """
    remarks = [text for text in (remark, *part.remarks()) if text]
    return [
        judge(claim, part.curves, remarks, part.too_short)
        for claim in CLAIMS
        if claim.figure == part.comparison.figure.name
        and (not involving or claim.criterion.involves(*involving))
    ]


def data_text(made: TrainedFigure) -> str:
    """The data behind a figure as CSV: a line for each run and measurement, to the last digit."""
    runs = [run for part in made.parts for run in part.runs]
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, *metrics])
    for part in made.parts:
        recipe = part.recipe
        of_part = (made.figure.name, recipe.variant.scale, recipe.variant.setting, recipe.dataset)
        for (place, spec), run in zip(part.specs, part.runs, strict=True):
            of_run = (*of_part, place.network, str(spec.partition), place.rule, spec.seed)
            missing = np.full(len(run.iterations), np.nan)
            columns = [run[name] if name in run.metrics else missing for name in metrics]
            values = np.stack(columns, axis=1).tolist()
            for iteration, line in zip(run.iterations.tolist(), values, strict=True):
                cells = ("" if np.isnan(value) else repr(value) for value in line)
                rows.writerow([*of_run, iteration, *cells])
    return text.getvalue()


def _draw(path: Path, made: TrainedFigure, part: TrainedComparison) -> list[Path]:
    """Draw a comparison as its figure is laid out."""
    figure, recipe = part.comparison.figure, part.recipe
    metrics = tuple(map(recipe.metric, figure.metrics))
    # The baseline has nobody whose gradient could disturb.
    panels = part.panels(figure.where, baseline=figure.layout != "gradients")
    if figure.layout == "networks":
        partition = PARTITION_TITLES[figure.partitions[0]]
        heading = f"{DATASET_TITLES[recipe.dataset]} {partition}; {figure.poison}"
        return panels_figure(path, panels, metrics, "\n".join(filter(None, (heading, note(part)))))
    [network] = figure.networks.values()
    if figure.layout == "gradients":
        return gradients_figure(path, network, panels, SHOWN, made.about(part) + note(part))
    return partitions_figure(path, network, panels, metrics, note(part))


def _tables(made: TrainedFigure, part: TrainedComparison) -> list[Table]:
    """Tables of the last values: a row for each rule, a column for each panel."""
    figure, before = part.comparison.figure, made.about(part)
    after = f"after {part.recipe.iterations:,} iterations"
    after += f", {part.seeds} seeds" if part.seeds > 1 else ""
    shown: dict[str, tuple[str, ...]] = {}
    for metric in map(part.recipe.metric, figure.metrics):
        axis = axis_of(metric)
        shown[f"{before}{axis[0].upper()}{axis[1:]} {after}"] = (metric,)
    agents = ("accuracy_mean", "accuracy_worst")
    measured = all(set(agents) <= set(run.metrics) for run in part.runs)
    if figure.layout == "partitions" and measured:
        shown[f"{before}Test accuracy of single agents {after}: mean / worst"] = agents
    panels = part.panels(figure.where, baseline=figure.layout != "gradients")
    return [ends_table(title, panels, metrics) for title, metrics in shown.items()]
