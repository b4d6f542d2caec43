"""Made-up measurements of the paper's figures, for tests of claims and pictures."""

import zlib
from dataclasses import dataclass

import numpy as np

from bezoar.data import Dataset
from bezoar.paper import FIGURES, Curves, TrainedComparison, TrainedFigure, Variant
from bezoar.report import Curve, look

LABELS = [look(rule).label for rule in FIGURES["fig2"].rules] + ["Baseline"]
QUICK = Variant(scale="quick")
METRICS = (
    "accuracy",
    "accuracy_mean",
    "accuracy_worst",
    "accuracy_all",
    "test_loss",
    "consensus_error",
    "variance_norm",
    "heterogeneity",
    "disturbance",
    "poison_share",
)


@dataclass(frozen=True)
class MadeUp:
    """A run nobody trained."""

    iterations: np.ndarray
    metrics: dict
    key: str = "0" * 32
    diverged: bool = False

    def __getitem__(self, metric):
        return self.metrics[metric]


def constant(value, points=6):
    """A run on which every metric is ``value`` all along, or what a mapping says."""
    values = value if isinstance(value, dict) else dict.fromkeys(METRICS, value)
    iterations = np.arange(points, dtype=np.int64) * 20
    metrics = {
        name: np.broadcast_to(np.asarray(found, dtype=float), (points,)).copy()
        for name, found in values.items()
    }
    return MadeUp(iterations, metrics)


def curves(figure, make, seeds=1):
    """The curves of a figure, their runs made by ``make(place, seed)``."""
    found = {}
    for place, spec in FIGURES[figure].comparisons()[0].runs(seeds):
        found.setdefault(place, []).append(make(place, spec.seed))
    return Curves({place: Curve(place.rule, tuple(runs)) for place, runs in found.items()})


def dataset(tests=10_000, note=""):
    """A dataset of which nothing but its tests and its note is asked."""
    labels = np.arange(2)
    test = np.zeros((tests, 1)), np.zeros(tests, dtype=np.int64)
    return Dataset("made_up", np.zeros((2, 1)), labels, *test, classes=2, note=note)


def trained(figure, variant=None, seeds=1, make=None, data=None):
    """A figure whose runs are made by ``make(place, spec)``."""
    variant = variant or Variant()
    parts = [
        TrainedComparison(part, runs, [make(*run) for run in runs], data or dataset())
        for part in figure.comparisons(variant)
        for runs in [part.runs(seeds)]
    ]
    return TrainedFigure(figure, variant, parts, f"bezoar reproduce {figure.name}")


def made_up(place, spec):
    """A run with values that depend on what it is, so that none can stand for another."""
    rng = np.random.default_rng(zlib.crc32(repr((place, spec.seed)).encode()))
    count = 1 + spec.iterations // spec.every
    metrics = {n: rng.uniform(0.01, 1, count) for n in METRICS if n in (spec.metrics or METRICS)}
    metrics["consensus_error"][0] = 0  # all start at the same place
    metrics["poison_share"][0] = np.nan  # there was no exchange yet
    if place.rule == "baseline" and "disturbance" in metrics:
        metrics["disturbance"][:] = np.nan
    return MadeUp(np.arange(count) * spec.every, metrics, f"{rng.integers(2**60):032x}")


def reproduced(name, seeds=1, variant=QUICK, note=""):
    """A figure with made-up runs."""
    data = dataset(note=note)
    return trained(FIGURES[name], variant, seeds, make=made_up, data=data)
