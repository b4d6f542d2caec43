"""A figure of the paper as a folder: pictures, the data behind them, and a page."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bezoar import networks
from bezoar._files import write_whole
from bezoar.experiments import RunSpec, StoredRun, dataset_of
from bezoar.paper._claims import judge
from bezoar.paper._criteria import Curves
from bezoar.paper._figure_claims import CLAIMS
from bezoar.paper._figures import gradients_figure, partitions_figure
from bezoar.paper._settings import NETWORK_TITLES, PARTITION_TITLES, Place, Setting
from bezoar.paper._texts import HEADINGS, METRICS, SHOWN, alternative, caption, shortened_note
from bezoar.report import (
    BASELINE,
    Curve,
    Image,
    Page,
    Panel,
    Table,
    data_note,
    ends_table,
    panels_figure,
)

#: Columns of the data that say which run a line is of.
COLUMNS = ("figure", "network", "partition", "rule", "seed", "iteration")


@dataclass(frozen=True)
class TrainedFigure:
    """What was trained for a figure.

    Attributes:
        name: the figure.
        setting: what was asked for.
        specs: its runs, each with its place.
        runs: what became of them.
        command: what was typed.
    """

    name: str
    setting: Setting
    specs: Sequence[tuple[Place, RunSpec]]
    runs: Sequence[StoredRun]
    command: str

    @cached_property
    def curves(self) -> Curves:
        """The curve of each place."""
        found: dict[Place, list[StoredRun]] = {}
        for (place, _), run in zip(self.specs, self.runs, strict=True):
            found.setdefault(place, []).append(run)
        return {place: Curve(place.rule, tuple(runs)) for place, runs in found.items()}

    @property
    def data_notes(self) -> list[str]:
        """What a reader must know about the data, such as that it was cut down."""
        notes = (data_note(spec.dataset, dataset_of(spec).note) for _, spec in self.specs)
        return list(dict.fromkeys(filter(None, notes)))

    def panels(self, title: Callable[[str, str], str], baseline: bool = True) -> list[Panel]:
        """A panel for each network and partition; ``title`` names them."""
        rules = (*self.setting.rules, BASELINE) if baseline else self.setting.rules
        return [
            Panel(
                title(network, partition),
                tuple(self.curves[Place(network, partition, rule)] for rule in rules),
                networks.create(network),
            )
            for network in self.setting.networks
            for partition in self.setting.partitions
        ]


def write_figure(folder: Path, made: TrainedFigure) -> Page:
    """Draw a figure, write the data behind it, judge the paper's claims about it."""
    name, setting = made.name, made.setting
    pictures = _draw(folder / name, made)
    write_whole(folder / f"{name}.csv", data_text(made).encode())
    alt = alternative(name, setting, made.curves)
    return Page(
        name=name,
        title=HEADINGS[name],
        caption=" ".join([caption(name, setting, made.curves), *made.data_notes]),
        command=made.command,
        images=tuple(Image(file=path.name, alt=alt) for path in pictures),
        data=(f"{name}.csv",),
        tables=tuple(_tables(made)),
        claims=tuple(
            judge(claim, made.curves, setting.iterations)
            for claim in CLAIMS
            if claim.figure == name
        ),
        metrics=tuple(METRICS[name]),
        panels=tuple(made.panels(lambda n, p: f"{NETWORK_TITLES[n]}, {PARTITION_TITLES[p]}")),
    ).save(folder)


def data_text(made: TrainedFigure) -> str:
    """The data behind a figure as CSV: a line for each run and measurement, to the last digit."""
    metrics = list(dict.fromkeys(name for run in made.runs for name in run.metrics))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, *metrics])
    for (place, spec), run in zip(made.specs, made.runs, strict=True):
        of_run = (made.name, place.network, str(spec.partition), place.rule, spec.seed)
        values = np.stack([run[metric] for metric in metrics], axis=1).tolist()
        for iteration, line in zip(run.iterations.tolist(), values, strict=True):
            cells = ("" if np.isnan(value) else repr(value) for value in line)
            rows.writerow([*of_run, iteration, *cells])
    return text.getvalue()


def _draw(path: Path, made: TrainedFigure) -> list[Path]:
    note = "; ".join(filter(None, (shortened_note(made.name, made.setting), *made.data_notes)))
    if made.name == "fig1":
        about = "MNIST by class, one agent of ten with flipped labels"
        panels = made.panels(lambda network, _: NETWORK_TITLES[network])
        title = f"{about}; {note}" if note else about
        return panels_figure(path, panels, tuple(METRICS["fig1"]), title)
    [network] = made.setting.networks
    poisoned = made.name == "fig4"  # which shows the poisoned agent's disturbance
    panels = made.panels(lambda _, partition: PARTITION_TITLES[partition], not poisoned)
    if poisoned:
        return gradients_figure(path, NETWORK_TITLES[network], panels, SHOWN, note)
    return partitions_figure(path, NETWORK_TITLES[network], panels, note)


def _tables(made: TrainedFigure) -> list[Table]:
    """Tables of the last values: a row for each rule, a column for each panel."""
    setting, seeds = made.setting, max(len(curve.runs) for curve in made.curves.values())
    after = f"after {setting.iterations:,} iterations" + (f", {seeds} seeds" if seeds > 1 else "")
    shown: dict[str, tuple[str, ...]] = {
        f"Test accuracy of the average model {after}": ("accuracy",),
        f"Consensus error {after}": ("consensus_error",),
    }
    if made.name == "fig4":
        shown = {
            f"Heterogeneity ξ {after}": ("heterogeneity",),
            f"Disturbance A {after}": ("disturbance",),
        }
    elif made.name != "fig1":
        title = f"Test accuracy of single agents {after}: mean / worst"
        shown[title] = ("accuracy_mean", "accuracy_worst")
    several = len(setting.networks) > 1
    panels = made.panels(
        lambda n, p: NETWORK_TITLES[n] if several else PARTITION_TITLES[p], made.name != "fig4"
    )
    return [ends_table(title, panels, metrics) for title, metrics in shown.items()]
