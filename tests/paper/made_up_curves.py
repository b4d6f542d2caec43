"""Made-up measurements of the paper's figures, for tests of claims and pictures."""

from dataclasses import dataclass

import numpy as np

from bezoar.paper import SETTINGS
from bezoar.report import Curve

METRICS = (
    "accuracy",
    "accuracy_mean",
    "accuracy_worst",
    "consensus_error",
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
    for place, spec in SETTINGS[figure].runs(seeds):
        found.setdefault(place, []).append(make(place, spec.seed))
    return {place: Curve(place.rule, tuple(runs)) for place, runs in found.items()}
