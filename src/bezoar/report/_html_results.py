"""What a report shows one after the other: reproduced figures and tables, or a store's runs."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bezoar._errors import BezoarError
from bezoar._numbers import number
from bezoar.experiments import Store, StoredRun
from bezoar.report._figures import axis_of
from bezoar.report._html_charts import Chart, Line, Rules, metrics_of
from bezoar.report._html_groups import common_fields, group_runs
from bezoar.report._summary import OUTCOMES, JudgedClaim, Summary, Table

#: Metrics that a section begins with, the first that its curves have.
FIRST = ("accuracy", "training_loss", "gradient_norm")

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """An image inside the page.

    Attributes:
        uri: a data URI.
        alt: what it shows, for those who cannot see it.
    """

    uri: str
    alt: str


@dataclass(frozen=True)
class Result:
    """A figure, a table, or the runs of a store.

    Attributes:
        id: what the page's links name it by.
        title, caption, command: as in :class:`Summary`.
        claims, tables: as in :class:`Summary`.
        charts: its curves.
        metric: the one to begin with.
        pictures: its images.
        missing: how many of its runs are no longer in the store.
    """

    id: str
    title: str
    caption: str = ""
    command: str = ""
    claims: tuple[JudgedClaim, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    metric: str = ""
    pictures: tuple[Picture, ...] = ()
    missing: int = 0

    @property
    def runs(self) -> list[StoredRun]:
        """Every run behind it."""
        return [run for chart in self.charts for line in chart.lines for run in line.runs]

    def tally(self) -> dict[str, int]:
        """How many of its claims have each verdict."""
        return tally(self.claims)


def tally(claims: Iterable[JudgedClaim]) -> dict[str, int]:
    """How many claims have each verdict; verdicts that no claim has are left out."""
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in OUTCOMES if verdict in verdicts}


def reproduced(folders: Sequence[Path], store: Store | None) -> list[Result]:
    """What was reproduced, from folders with summaries and the store with the runs they name."""
    found = {folder: Summary.load(folder) for folder in folders}
    keys = dict.fromkeys(curve.key for summary in found.values() for curve in summary.curves)
    there = [key for key in keys if store and key in store]
    runs = {run.key: run for run in read_runs(store, there)[0]} if store else {}
    return [
        _reproduced(f"result-{place}", folder, summary, runs)
        for place, (folder, summary) in enumerate(found.items(), start=1)
    ]


def _reproduced(id: str, folder: Path, summary: Summary, runs: dict[str, StoredRun]) -> Result:
    lines: dict[tuple[str, str], list[StoredRun]] = {}
    for curve in summary.curves:
        if curve.key in runs:
            lines.setdefault((curve.panel, curve.rule), []).append(runs[curve.key])
    panels: dict[str, list[Line]] = {}
    for (panel, rule), several in lines.items():
        panels.setdefault(panel, []).append(Line.of(rule, several))
    charts = [Chart(title, tuple(curves)) for title, curves in panels.items()]
    pictures = [_picture(folder, image.file, image.alt) for image in summary.images]
    return Result(
        id=id,
        title=summary.title,
        caption=summary.caption,
        command=summary.command,
        claims=summary.claims,
        tables=summary.tables,
        charts=tuple(charts),
        metric=_first_metric(charts, summary.metrics),
        pictures=tuple(picture for picture in pictures if picture is not None),
        missing=len({curve.key for curve in summary.curves} - set(runs)),
    )


def read_runs(store: Store, keys: Iterable[str]) -> tuple[list[StoredRun], list[BezoarError]]:
    """The runs of some keys with all that a report needs of them, and why others cannot be read."""
    runs, problems = [], []
    for key in keys:
        try:
            run = store.load(key)
            _ = run.metrics, run.provenance  # read now, so that damage is found here
            runs.append(run)
        except BezoarError as error:
            problems.append(error)
    return runs, problems


def stored(runs: Sequence[StoredRun]) -> Result:
    """The runs of a store, those on the same network, data and attack in a chart."""
    charts = group_runs(runs)
    return Result(
        id="result-1",
        title="Runs",
        caption=common_fields(runs),
        charts=tuple(charts),
        metric=_first_metric(charts),
    )


def with_final_table(result: Result, rules: Rules) -> Result:
    """The result with a table of its curves' ends, unless it has tables of its own."""
    if result.tables or not result.charts:
        return result
    return replace(result, tables=(final_table(result.charts, result.metric, rules),))


def final_table(charts: Sequence[Chart], metric: str, rules: Rules) -> Table:
    """Where the curves end: the mean over seeds, and the extremes if there are several."""
    labels = {rules.name(line): rules.label(line) for chart in charts for line in chart.lines}
    ordered = [look["name"] for look in rules.looks if look["name"] in labels]
    ends = [{rules.name(line): _end(line, metric) for line in chart.lines} for chart in charts]
    title = f"At the end: {axis_of(metric)}"
    if len(charts) > len(ordered):
        columns = ("", *(labels[name] for name in ordered))
        rows = [
            (chart.title, *(end.get(name, "–") for name in ordered))
            for chart, end in zip(charts, ends, strict=True)
        ]
    else:
        columns = ("rule", *(chart.title for chart in charts))
        rows = [(labels[name], *(end.get(name, "–") for end in ends)) for name in ordered]
    return Table(title=title, columns=columns, rows=tuple(rows))


def _end(line: Line, metric: str) -> str:
    if line.diverged:
        return "diverged"
    if metric not in line.metrics:
        return "–"
    last = line.values(metric)[:, -1]
    if len(last) == 1:
        return number(float(last[0]))
    return f"{number(float(last.mean()))} ({number(float(last.min()))}…{number(float(last.max()))})"


def _first_metric(charts: Sequence[Chart], wanted: Iterable[str] = ()) -> str:
    there = metrics_of(charts)
    return next((name for name in (*wanted, *FIRST, *there) if name in there), "")


def _picture(folder: Path, file: str, alt: str) -> Picture | None:
    """An image beside a summary; one that was removed is left out."""
    path = folder / file
    if Path(file).name != file:
        raise BezoarError(f"{folder}: images lie beside the summary, found {file!r}")
    if path.suffix.lower() != ".png" or not path.exists():
        return None
    content = path.read_bytes()
    if not content.startswith(PNG):
        raise BezoarError(f"{path}: expected a PNG image, found something else")
    return Picture(f"data:image/png;base64,{base64.b64encode(content).decode()}", alt)
