"""Parts of the report: its first paragraph, the data of its charts, and the runs' provenance."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from bezoar._arrays import Floats
from bezoar._numbers import count, joined
from bezoar.experiments import StoredRun, spec_of
from bezoar.report._best import JUDGED
from bezoar.report._page import Curve, Panel, thinned
from bezoar.report._style import Look, is_baseline
from bezoar.report._tables import flat, told_apart, training_time
from bezoar.training import METRICS

#: What is shown of the runs' provenance, and where that is in it.
FACTS = {
    "bezoar": "own.bezoar",
    "torch": "own.torch",
    "numpy": "own.numpy",
    "Python": "versions.python",
    "system": "machine.system",
    "processor": "machine.processor",
    "cores": "machine.cores",
    "commit of the checkout": "checkout.commit",
}

#: The most points of a curve, and the fewest where there are very many curves.
POINTS, FEWEST = 300, 30

#: The most numbers in a page, about eight bytes each, unless curves would have too few points.
NUMBERS = 400_000

#: Matplotlib's line styles as SVG has them.
DASHES = {"-": "none", "--": "6 4", "-.": "8 3 2 3", ":": "2 3"}


def opening(
    pages: int, runs: Sequence[StoredRun], looks: Collection[Look], names: Mapping[str, str]
) -> Markup:
    """What was trained, and when, in a few sentences; with ``names`` for some choices."""
    if not runs:
        return escape(f"{count(pages, 'result')} that took no training.")

    def distinct(field: str) -> Markup:
        choices = dict.fromkeys(getattr(spec, field) for spec in specs)
        texts = told_apart({choice: str(choice) for choice in choices})
        return _listed(names.get(text, text) for text in texts.values())

    specs = [spec_of(run) for run in runs]
    when, seconds = training_time(runs)
    names = {"softmax": "softmax regression", **names}
    seeds = sorted({spec.seed for spec in specs})
    baseline = any(is_baseline(look.name) for look in looks)
    iterations = joined(f"{number:,}" for number in sorted({spec.iterations for spec in specs}))
    sentences = [
        f"{count(len(runs), 'run')} of {distinct('model')} on {distinct('dataset')}, "
        f"{iterations} iterations, seed{'s' if len(seeds) > 1 else ''} {_listed(seeds)}: "
        f"{joined(isolated(look.label) for look in looks)}.",
        "The baseline is the weighted mean with nobody poisoned." if baseline else "",
        f"Networks: {distinct('network')}.",
        f"Partition: {distinct('partition')}.",
        f"Trained {when}, {seconds} in all." if when else "",
    ]
    return Markup(" ".join(filter(None, sentences)))  # every name in it is escaped


def isolated(name: object) -> Markup:
    """A name from outside, whose direction of writing does not spread to the text around it."""
    return Markup("<bdi>{}</bdi>").format(name)


def provenance_rows(runs: Sequence[StoredRun]) -> list[tuple[str, str]]:
    """Versions and machines of the runs; where runs differ, each value with its number of runs."""
    facts = [flat(run.provenance | {"own": run.versions}) for run in runs]
    for fact in facts:
        if fact.get("checkout.changed") and fact.get("checkout.commit"):
            fact["checkout.commit"] = f"{fact['checkout.commit']} with changes"
    rows = [(name, _tallied(fact.get(key) for fact in facts)) for name, key in FACTS.items()]
    when, seconds = training_time(runs)
    rows += [("trained", when), ("training time", seconds), ("runs", str(len(runs)))]
    return [(name, text) for name, text in rows if text]


def _listed(names: Iterable[object]) -> Markup:
    """Names, isolated and so escaped; the first of them if there are many."""
    found = [isolated(name) for name in names]
    return Markup(joined(found if len(found) <= 6 else [*found[:5], f"{len(found) - 5} more"]))


def _tallied(values: Iterable[object]) -> str:
    found = [str(value) for value in values if value not in (None, "")]
    distinct = list(dict.fromkeys(found))
    if len(distinct) <= 1:
        return "".join(distinct)
    return "; ".join(f"{value} ({count(found.count(value), 'run')})" for value in distinct)


def metrics_of(panels: Sequence[Panel]) -> list[str]:
    """The metrics that some curve of the panels has, what agents themselves hold first."""
    found = {name for panel in panels for curve in panel.curves for name in curve.metrics}
    return [name for name in dict.fromkeys((*JUDGED, *METRICS)) if name in found]


def chart_data(
    sections: Sequence[tuple[str, str, Sequence[Panel]]], looks: dict[str, Look]
) -> dict[str, Any]:
    """The data that the report's script draws.

    A section is the id of the element to draw into, the metric to show first, and the panels.
    """
    order = list(looks)
    curves: list[Curve] = []
    places: dict[tuple[object, ...], int] = {}

    def panel_data(panel: Panel) -> dict[str, Any]:
        """Where its curves are in the list of all; figures that share a run share its curve."""
        shown = []
        for curve in sorted(panel.curves, key=lambda curve: order.index(curve.name)):
            same = (curve.name, *map(id, curve.runs))
            if same not in places:
                places[same] = len(curves)
                curves.append(curve)
            shown.append(places[same])
        return {"title": panel.title, "curves": shown}

    drawn = [
        {"id": id_, "metric": metric, "metrics": metrics_of(panels)}
        | {"panels": [panel_data(panel) for panel in panels]}
        for id_, metric, panels in sections
    ]
    numbers = sum(len(c.metrics) * (3 if len(c.runs) > 1 else 1) for c in curves)
    points = min(POINTS, max(FEWEST, NUMBERS // max(1, numbers)))
    shown = metrics_of([panel for _, _, panels in sections for panel in panels])
    return {
        "rules": {
            look.name: {"place": place, "label": look.label}
            | {"marker": look.marker, "dash": DASHES[look.line]}
            # The name for the command line, where the label is another one.
            | {"typed": "" if look.name == look.label or is_baseline(look.name) else look.name}
            for place, look in enumerate(looks.values())
        },
        "metrics": {
            name: {"title": metric.axis, "about": metric.title, "log": metric.logarithmic}
            for name, metric in METRICS.items()
            if name in shown
        },
        "curves": [_curve(curve, looks[curve.name].name, points) for curve in curves],
        "sections": drawn,
    }


def _curve(curve: Curve, name: str, points: int) -> dict[str, Any]:
    """A curve with at most this many of its measured points; none is interpolated."""
    kept = thinned(len(curve.iterations), points)
    document: dict[str, Any] = {"rule": name, "x": curve.iterations[kept].tolist(), "values": {}}
    for metric in (name for name in METRICS if name in curve.metrics):
        document["values"][metric] = _numbers(curve.mean(metric)[kept])
        if len(curve.runs) > 1:
            for end, limit in zip(("low", "high"), curve.limits(metric), strict=True):
                document.setdefault(end, {})[metric] = _numbers(limit[kept])
    return document


def _numbers(values: Floats) -> list[float | None]:
    """Values with six digits; those that are not finite become ``None``."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]
