"""Made-up measurements of the paper's figures, for tests of claims and pictures."""

from dataclasses import dataclass

import numpy as np

from bezoar.experiments import SETTINGS, Findings

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


def findings(figure, make, seeds=(0,)):
    """Findings of a figure, its runs made by ``make(place, seed)``."""
    cells = SETTINGS[figure].cells(seeds)
    return Findings.collect(cells, [make(cell.place, cell.spec.seed) for cell in cells])
