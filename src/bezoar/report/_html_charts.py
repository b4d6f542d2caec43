"""The curves of a report: runs that differ in their seeds alone are one curve with a band."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar.experiments import BASELINE, StoredRun
from bezoar.report._style import LOOKS, look, on_dark
from bezoar.training import METRICS

#: Points of a curve at the most, and at the least where there are very many curves.
POINTS, FEWEST = 300, 30

#: Numbers in a page at the most, about eight bytes each, as long as curves keep enough points.
NUMBERS = 400_000

#: Matplotlib's line styles as SVG has them.
DASHES = {"-": "none", "--": "6 4", "-.": "8 3 2 3", ":": "2 3"}

#: Line styles for one rule with several sets of options.
VARIANTS = ("none", "7 3", "2 3", "9 3 2 3", "12 4")


@dataclass(frozen=True)
class Line:
    """A curve.

    Attributes:
        rule: the aggregator's name, or ``"baseline"``.
        options: the aggregator's options, as text.
        runs: one a seed.
    """

    rule: str
    options: str
    runs: tuple[StoredRun, ...]

    @classmethod
    def of(cls, rule: str, runs: Iterable[StoredRun]) -> "Line":
        """The curve of some runs of a rule."""
        found = tuple(sorted(runs, key=lambda run: (run.spec.seed, run.key)))
        return cls(rule, str(found[0].spec.aggregator).partition(":")[2], found)

    @cached_property
    def metrics(self) -> list[str]:
        """What was measured in all its runs."""
        return [name for name in METRICS if all(name in run.metrics for run in self.runs)]

    @cached_property
    def iterations(self) -> NDArray[np.int64]:
        """``[n]`` when all its runs were measured."""
        return reduce(np.intersect1d, (run.iterations for run in self.runs))

    def values(self, metric: str) -> NDArray[np.float64]:
        """``[runs, n]`` a metric of every run."""
        kept = self.iterations
        return np.stack([run[metric][np.isin(run.iterations, kept)] for run in self.runs])

    @property
    def diverged(self) -> bool:
        """Whether some run ended with models that are not finite."""
        return any(run.diverged for run in self.runs)


@dataclass(frozen=True)
class Chart:
    """Curves in the same axes.

    Attributes:
        title: what to write above them.
        lines: the curves.
    """

    title: str
    lines: tuple[Line, ...]


class Rules:
    """The names and looks of all rules on a page, the same in every chart.

    Args:
        charts: everything on the page.
    """

    def __init__(self, charts: Iterable[Chart]) -> None:
        found = dict.fromkeys((line.rule, line.options) for c in charts for line in c.lines)
        ours = [rule for rule in LOOKS if rule != BASELINE]
        self._options: dict[str, list[str]] = {}
        for rule, options in sorted(found, key=lambda pair: (_place(pair[0], ours), pair)):
            self._options.setdefault(rule, []).append(options)
        self.looks = [self._look(*pair) for pair in self._pairs()]

    def _pairs(self) -> list[tuple[str, str]]:
        return [(rule, options) for rule, several in self._options.items() for options in several]

    def name(self, line: Line) -> str:
        """What the rule of a curve is known by on the page."""
        return self._name(line.rule, line.options)

    def label(self, line: Line) -> str:
        """The same in words."""
        labels: dict[str, str] = {look["name"]: look["label"] for look in self.looks}
        return labels[self.name(line)]

    def ordered(self, lines: Iterable[Line]) -> list[Line]:
        """Curves in the order of the legend."""
        names = [look["name"] for look in self.looks]
        return sorted(lines, key=lambda line: names.index(self.name(line)))

    def _name(self, rule: str, options: str) -> str:
        return f"{rule}:{options}" if len(self._options[rule]) > 1 else rule

    def _look(self, rule: str, options: str) -> dict[str, Any]:
        several = self._options[rule]
        others = [name for name in self._options if name not in LOOKS]
        drawn = look(rule, others.index(rule) if rule in others else 0)
        label, dash = drawn.label, DASHES[drawn.line]
        if len(several) > 1:
            label = f"{label} {options or 'default'}"
            dash = VARIANTS[several.index(options) % len(VARIANTS)]
        return {
            "name": self._name(rule, options),
            "label": label,
            "colour": drawn.colour,
            "dark": on_dark(drawn.colour),
            "marker": drawn.marker,
            "dash": dash,
        }


def _place(rule: str, ours: list[str]) -> int:
    """Our rules first, the users' own after them, the baseline last."""
    return ours.index(rule) if rule in ours else len(ours) + (rule == BASELINE)


def chart_data(
    sections: Sequence[tuple[str, str, Sequence[Chart]]], rules: Rules
) -> dict[str, Any]:
    """What the page's script draws, as JSON holds it.

    Args:
        sections: for each, the name of the element to draw into, the metric to begin with, and
            the charts.
        rules: the rules of the page.
    """
    lines = {
        (rules.name(line), *(run.key for run in line.runs)): line
        for _, _, charts in sections
        for chart in charts
        for line in chart.lines
    }
    places = {key: place for place, key in enumerate(lines)}
    numbers = sum(len(line.metrics) * (3 if len(line.runs) > 1 else 1) for line in lines.values())
    points = min(POINTS, max(FEWEST, NUMBERS // max(1, numbers)))
    shown = {name for line in lines.values() for name in line.metrics}
    return {
        "rules": {
            look["name"]: {"place": place} | {key: look[key] for key in ("label", "marker", "dash")}
            for place, look in enumerate(rules.looks)
        },
        "metrics": {
            name: {"title": metric.axis, "about": metric.title, "log": metric.logarithmic}
            for name, metric in METRICS.items()
            if name in shown
        },
        "curves": [_curve(line, rules.name(line), points) for line in lines.values()],
        "sections": [
            {
                "id": element,
                "metric": metric,
                "metrics": metrics_of(charts),
                "panels": [
                    {
                        "title": chart.title,
                        "curves": [
                            places[rules.name(line), *(run.key for run in line.runs)]
                            for line in rules.ordered(chart.lines)
                        ],
                    }
                    for chart in charts
                ],
            }
            for element, metric, charts in sections
        ],
    }


def metrics_of(charts: Sequence[Chart]) -> list[str]:
    """The metrics that some curve of the charts has, in the usual order."""
    found = {name for chart in charts for line in chart.lines for name in line.metrics}
    return [name for name in METRICS if name in found]


def _curve(line: Line, rule: str, points: int) -> dict[str, Any]:
    """A curve with a few hundred of its points: measured ones, none made up between them."""
    kept = thinned(len(line.iterations), points)
    curve: dict[str, Any] = {"rule": rule, "x": line.iterations[kept].tolist(), "values": {}}
    for metric in line.metrics:
        values = line.values(metric)[:, kept]
        curve["values"][metric] = _numbers(values.mean(0))
        if len(line.runs) > 1:
            curve.setdefault("low", {})[metric] = _numbers(values.min(0))
            curve.setdefault("high", {})[metric] = _numbers(values.max(0))
    return curve


def thinned(count: int, most: int) -> NDArray[np.int64]:
    """The places of at most so many of ``count`` points, evenly, the first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Six digits are more than a screen shows; what is not finite is left out."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]
