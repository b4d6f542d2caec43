"""A figure of the paper as a folder: pictures, the data behind them, and a summary."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bezoar._numbers import number
from bezoar.experiments import (
    BASELINE,
    CLAIMS,
    NETWORKS,
    PARTITION_TITLES,
    Cell,
    Findings,
    Judged,
    Place,
    Setting,
    StoredRun,
    judge_all,
    network_of,
)
from bezoar.networks import Network
from bezoar.report._figures import Panel
from bezoar.report._paper_figures import (
    Column,
    gradients_figure,
    motivation_figure,
    partitions_figure,
)
from bezoar.report._paper_texts import (
    HEADINGS,
    SHOWN,
    alternative,
    caption,
    metrics_of,
    panel_title,
    shortened_note,
)
from bezoar.report._style import look
from bezoar.report._summary import Curve, Image, JudgedClaim, Summary, Table
from bezoar.report._tables import save_text

#: Columns of the data that say which run a line is of.
COLUMNS = ("figure", "network", "partition", "rule", "seed", "iteration")


@dataclass(frozen=True)
class Reproduced:
    """What was run for a figure.

    Attributes:
        name: the figure.
        setting: what was asked for.
        cells: its runs.
        runs: what became of them.
        command: what was typed.
    """

    name: str
    setting: Setting
    cells: Sequence[Cell]
    runs: Sequence[StoredRun]
    command: str

    @property
    def findings(self) -> Findings:
        """What was measured, by curve and seed."""
        return Findings.collect(self.cells, self.runs)

    def network(self, name: str) -> Network:
        """A network of the figure, with its poisoned agents."""
        return network_of(next(c.spec for c in self.cells if c.place.network == name))


def write_figure(folder: Path, made: Reproduced) -> Summary:
    """Draw a figure, write the data behind it, judge the paper's claims about it, and sum up."""
    findings, setting = made.findings, made.setting
    stem = folder / made.name
    png, pdf = _draw(stem, made, findings)
    data = save_text(stem, ".csv", curves_text(made))
    alt = alternative(made.name, setting, findings)
    summary = Summary(
        name=made.name,
        title=HEADINGS[made.name],
        caption=caption(made.name, setting, findings, made.network(setting.networks[0])),
        command=made.command,
        images=(Image(file=png.name, alt=alt), Image(file=pdf.name, alt=alt)),
        data=(data.name,),
        tables=tuple(_tables(made, findings)),
        claims=tuple(
            written(judged) for judged in judge_all(CLAIMS, made.name, findings, setting.iterations)
        ),
        curves=tuple(
            Curve(
                key=run.key,
                panel=panel_title(cell.place.network, cell.place.partition),
                rule=cell.place.rule,
            )
            for cell, run in zip(made.cells, made.runs, strict=True)
        ),
        metrics=tuple(metrics_of(made.name)),
    )
    summary.save(folder)
    return summary


def written(judged: Judged) -> JudgedClaim:
    """A judged claim as it is kept."""
    return JudgedClaim(
        text=judged.text,
        verdict=judged.verdict,
        measured=judged.measured,
        margins=judged.margins,
        resolution=judged.claim.resolution,
        paper=judged.claim.paper,
    )


def curves_text(made: Reproduced) -> str:
    """The data behind a figure as CSV: a line a run and measurement, numbers to the last digit."""
    metrics = list(dict.fromkeys(name for run in made.runs for name in run.metrics))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, *metrics])
    for cell, run in zip(made.cells, made.runs, strict=True):
        spec, place = cell.spec, cell.place
        of_run = (made.name, place.network, str(spec.partition), place.rule, spec.seed)
        values = np.stack([run[metric] for metric in metrics], axis=1).tolist()
        for iteration, line in zip(run.iterations.tolist(), values, strict=True):
            cells = ("" if np.isnan(value) else repr(value) for value in line)
            rows.writerow([*of_run, iteration, *cells])
    return text.getvalue()


def _draw(stem: Path, made: Reproduced, findings: Findings) -> tuple[Path, Path]:
    setting, note = made.setting, shortened_note(made.name, made.setting)
    if made.name == "fig1":
        about = "MNIST by class, one agent of ten with flipped labels"
        title = f"{about}; {note}" if note else about
        return motivation_figure(stem, _panels(made, findings), tuple(metrics_of("fig1")), title)
    [network] = setting.networks
    columns = [
        Column(
            PARTITION_TITLES[partition],
            [
                (look(rule), findings.band(Place(network, partition, rule)))
                for rule in (*setting.rules, BASELINE)
                if rule != BASELINE or made.name != "fig4"  # which has nobody poisoned
            ],
        )
        for partition in setting.partitions
    ]
    common = (stem, NETWORKS[network], made.network(network), columns)
    if made.name == "fig4":
        return gradients_figure(*common, shown=look(SHOWN).label, note=note)
    return partitions_figure(*common, note=note)


def _panels(made: Reproduced, findings: Findings) -> list[Panel]:
    [partition] = made.setting.partitions
    return [
        Panel(
            NETWORKS[network],
            made.network(network),
            [
                (look(rule), findings.band(Place(network, partition, rule)))
                for rule in (*made.setting.rules, BASELINE)
            ],
        )
        for network in made.setting.networks
    ]


def _tables(made: Reproduced, findings: Findings) -> list[Table]:
    setting = made.setting
    seeds = len(findings.seeds)
    ends = f"after {setting.iterations:,} iterations" + (f", {seeds} seeds" if seeds > 1 else "")
    if made.name == "fig4":
        return [
            _table(made, findings, f"Heterogeneity ξ {ends}", ("heterogeneity",)),
            _table(made, findings, f"Disturbance A {ends}", ("disturbance",)),
        ]
    tables = [
        _table(made, findings, f"Test accuracy of the average model {ends}", ("accuracy",)),
        _table(made, findings, f"Consensus error {ends}", ("consensus_error",)),
    ]
    if made.name != "fig1":
        tables.append(
            _table(
                made,
                findings,
                f"Test accuracy of single agents {ends}: mean / worst",
                ("accuracy_mean", "accuracy_worst"),
            )
        )
    return tables


def _table(made: Reproduced, findings: Findings, title: str, metrics: Sequence[str]) -> Table:
    """The ends of the curves: a row a rule, a column a panel."""
    setting = made.setting
    panels = [(n, p) for n in setting.networks for p in setting.partitions]
    several = len(setting.networks) > 1
    rules = setting.rules if made.name == "fig4" else (*setting.rules, BASELINE)
    return Table(
        title=title,
        columns=("rule", *(NETWORKS[n] if several else PARTITION_TITLES[p] for n, p in panels)),
        rows=tuple(
            (
                look(rule).label,
                *(
                    " / ".join(_end(findings, Place(*panel, rule), metric) for metric in metrics)
                    for panel in panels
                ),
            )
            for rule in rules
        ),
    )


def _end(findings: Findings, place: Place, metric: str) -> str:
    """Where a curve ends; of several seeds, from the smallest to the largest."""
    write = "{:.3f}".format if metric.startswith("accuracy") else number
    limits = findings.band(place).limits(metric)
    return "…".join(dict.fromkeys(write(float(limit[-1])) for limit in limits))
