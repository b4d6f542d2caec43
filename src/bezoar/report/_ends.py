"""Legends of panels, and tables of where their curves end."""

from collections.abc import Iterable, Sequence

from bezoar._numbers import number
from bezoar.report._curves import Curve, Panel
from bezoar.report._page import Table
from bezoar.report._style import Look, looks


def legend(panels: Iterable[Panel]) -> dict[tuple[str, str], Look]:
    """The looks of all curves by rule and options, in the order of a legend."""
    return looks((curve.rule, curve.options) for panel in panels for curve in panel.curves)


def ends_table(title: str, panels: Sequence[Panel], metrics: Sequence[str]) -> Table:
    """Where curves end: a row for each rule, a column for each panel, or the other way round."""
    shown = legend(panels)
    ends = [{(c.rule, c.options): _end(c, metrics) for c in panel.curves} for panel in panels]
    rows = [(shown[key].label, *(end.get(key, "–") for end in ends)) for key in shown]
    columns = ("rule", *(panel.title for panel in panels))
    if len(panels) > len(shown):
        columns, *rows = zip(columns, *rows, strict=True)
        columns = ("", *columns[1:])
    return Table(title=title, columns=columns, rows=tuple(rows))


def _end(curve: Curve, metrics: Sequence[str]) -> str:
    """The last mean over the seeds, and for a single metric the smallest and the largest value."""
    if curve.diverged:
        return "diverged"
    if not set(metrics) <= set(curve.metrics):
        return "–"
    text = " / ".join(number(float(curve.mean(metric)[-1])) for metric in metrics)
    if len(metrics) > 1 or len(curve.runs) == 1:
        return text
    low, high = (number(float(limit[-1])) for limit in curve.limits(metrics[0]))
    return f"{text} ({low}…{high})"
