"""Legends of panels, and tables of what their curves come to."""

from collections.abc import Iterable, Sequence

import numpy as np

from bezoar._numbers import number
from bezoar.report._curves import Curve, Panel
from bezoar.report._page import Page, Table
from bezoar.report._style import Look, looks
from bezoar.report._theory import describe
from bezoar.training import METRICS


def legend(panels: Iterable[Panel]) -> dict[tuple[str, str], Look]:
    """The looks of all curves by rule and options, in the order of a legend."""
    return looks((curve.rule, curve.options) for panel in panels for curve in panel.curves)


def ends_table(title: str, panels: Sequence[Panel], metrics: Sequence[str]) -> Table:
    """The last values of curves: rows are rules and columns panels, or the reverse if shorter."""
    shown = legend(panels)
    ends = [{(c.rule, c.options): _end(c, metrics) for c in panel.curves} for panel in panels]
    rows = [(shown[key].label, *(end.get(key, "–") for end in ends)) for key in shown]
    columns = ("rule", *(panel.title for panel in panels))
    if len(panels) > len(shown):
        columns, *rows = zip(columns, *rows, strict=True)
        columns = ("", *columns[1:])
    return Table.of(title, columns, rows)


def _end(curve: Curve, metrics: Sequence[str]) -> str:
    """The last mean over the seeds; for a single metric, also the smallest and largest value."""
    if curve.diverged:
        return "diverged"
    if not set(metrics) <= set(curve.metrics):
        return "–"
    text = " / ".join(number(float(curve.mean(metric)[-1])) for metric in metrics)
    if len(metrics) > 1 or len(curve.runs) == 1:
        return text
    low, high = (number(float(limit[-1])) for limit in curve.limits(metrics[0]))
    return f"{text} ({low}…{high})"


def panel_page(title: str, panel: Panel, about: str) -> Page:
    """The last measurements of each curve; of a single curve, also some before.

    Args:
        title: a heading.
        panel: the curves.
        about: what to say of them, beside what their network is.
    """
    first = panel.curves[0]
    shown = {name: METRICS[name].column or "" for name in METRICS if name in first.metrics}
    shown = {name: column for name, column in shown.items() if column}
    iterations = first.iterations.tolist()
    if len(panel.curves) == 1:
        head, heading = "iteration", _name(first)
        places = np.unique(np.linspace(0, len(iterations) - 1, min(len(iterations), 6)).astype(int))
        rows = [(str(iterations[place]), first, place) for place in places.tolist()]
    else:
        head, heading = "rule", f"After {iterations[-1]} iterations"
        rows = [(_name(curve), curve, -1) for curve in panel.curves]
    cells = (
        (name, *(number(float(curve.mean(metric)[place])) for metric in shown))
        for name, curve, place in rows
    )
    diverged = (
        f"{_name(curve)} diverged: some models are no longer finite."
        for curve in panel.curves
        if curve.diverged
    )
    network = f"{describe(panel.network)}; " if panel.network else ""
    return Page(
        name="run",
        title=title,
        caption="\n".join([f"{network}{about}", *diverged]),
        tables=(Table.of(heading, (head, *shown.values()), cells),),
    )


def _name(curve: Curve) -> str:
    return f"{curve.rule}:{curve.options}" if curve.options else curve.rule
