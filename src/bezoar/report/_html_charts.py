"""The curves of a report as the script of its page draws them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar.report._curves import Curve, Panel
from bezoar.report._style import Look
from bezoar.training import METRICS

#: Points of a curve at the most, and at the least where there are very many curves.
POINTS, FEWEST = 300, 30

#: Numbers in a page at the most, about eight bytes each, as long as curves keep enough points.
NUMBERS = 400_000

#: Matplotlib's line styles as SVG has them.
DASHES = {"-": "none", "--": "6 4", "-.": "8 3 2 3", ":": "2 3"}


def metrics_of(panels: Sequence[Panel]) -> list[str]:
    """The metrics that some curve of the panels has, in the usual order."""
    found = {name for panel in panels for curve in panel.curves for name in curve.metrics}
    return [name for name in METRICS if name in found]


def chart_data(
    sections: Sequence[tuple[str, str, Sequence[Panel]]], looks: dict[tuple[str, str], Look]
) -> dict[str, Any]:
    """The data that the page's script draws, ready for JSON.

    Args:
        sections: for each, the name of the element to draw into, the metric to begin with, and
            the panels.
        looks: the looks of all curves, in the order of the legend.
    """
    panels = [panel for _, _, several in sections for panel in several]
    # Figures may share runs: each curve is in the page once.
    curves = {_identity(curve): curve for panel in panels for curve in panel.curves}
    places = {identity: place for place, identity in enumerate(curves)}
    numbers = sum(len(c.metrics) * (3 if len(c.runs) > 1 else 1) for c in curves.values())
    points = min(POINTS, max(FEWEST, NUMBERS // max(1, numbers)))
    order = list(looks)
    return {
        "rules": {
            look.name: {
                "place": place,
                "label": look.label,
                "marker": look.marker,
                "dash": DASHES[look.line],
            }
            for place, look in enumerate(looks.values())
        },
        "metrics": {
            name: {
                "title": METRICS[name].axis,
                "about": METRICS[name].title,
                "log": METRICS[name].logarithmic,
            }
            for name in metrics_of(panels)
        },
        "curves": [_curve(c, looks[c.rule, c.options].name, points) for c in curves.values()],
        "sections": [
            {
                "id": element,
                "metric": metric,
                "metrics": metrics_of(several),
                "panels": [
                    {
                        "title": panel.title,
                        "curves": [
                            places[_identity(curve)]
                            for curve in sorted(
                                panel.curves, key=lambda c: order.index((c.rule, c.options))
                            )
                        ],
                    }
                    for panel in several
                ],
            }
            for element, metric, several in sections
        ],
    }


def _identity(curve: Curve) -> tuple[object, ...]:
    return (curve.rule, curve.options, *map(id, curve.runs))


def _curve(curve: Curve, name: str, points: int) -> dict[str, Any]:
    """A curve with at most so many of its measured points; nothing is interpolated."""
    kept = thinned(len(curve.iterations), points)
    document: dict[str, Any] = {"rule": name, "x": curve.iterations[kept].tolist(), "values": {}}
    for metric in (name for name in METRICS if name in curve.metrics):
        document["values"][metric] = _numbers(curve.mean(metric)[kept])
        if len(curve.runs) > 1:
            for end, limit in zip(("low", "high"), curve.limits(metric), strict=True):
                document.setdefault(end, {})[metric] = _numbers(limit[kept])
    return document


def thinned(count: int, most: int) -> NDArray[np.int64]:
    """The indices of at most ``most`` of ``count`` points, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Values with six digits; those that are not finite become ``None``."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]
