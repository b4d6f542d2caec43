"""Curves and panels: what pictures, tables and pages show of runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bezoar.experiments import StoredRun
    from bezoar.networks import Network
    from bezoar.training import History

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Runs that differ in their seeds alone: one curve, and a band from the lowest to the highest.

    Attributes:
        rule: the aggregator's name, or ``"baseline"``.
        runs: at least one, finished or just trained.
        options: the aggregator's options, as text.
    """

    rule: str
    runs: "tuple[StoredRun | History, ...]"
    options: str = ""

    @classmethod
    def stored(cls, rule: str, runs: "Iterable[StoredRun]") -> "Curve":
        """The curve of finished runs, in the order of their seeds."""
        from bezoar.experiments import spec_of  # imports torch

        ordered = sorted(runs, key=lambda run: (spec_of(run).seed, run.key))
        return cls(rule, tuple(ordered), str(spec_of(ordered[0]).aggregator).partition(":")[2])

    @cached_property
    def iterations(self) -> NDArray[np.int64]:
        """``[n]`` after how many iterations all runs were measured."""
        return reduce(np.intersect1d, (run.iterations for run in self.runs))

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that all runs have."""
        return [name for name in self.runs[0].metrics if all(name in r.metrics for r in self.runs)]

    def values(self, metric: str) -> Floats:
        """``[runs, n]`` a metric of every run."""
        kept = self.iterations
        return np.stack([run[metric][np.isin(run.iterations, kept)] for run in self.runs])

    def mean(self, metric: str) -> Floats:
        """``[n]`` the mean over the runs."""
        mean: Floats = self.values(metric).mean(axis=0)
        return mean

    def limits(self, metric: str) -> tuple[Floats, Floats]:
        """``[n]`` and ``[n]``: the smallest and the largest value of the runs."""
        values = self.values(metric)
        return values.min(axis=0), values.max(axis=0)

    @property
    def diverged(self) -> bool:
        """Whether some run ended with models that are not finite."""
        return any(run.diverged for run in self.runs)


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves in the same axes.

    Attributes:
        title: what to write above them.
        curves: the curves.
        network: what to draw beside them, if anything.
    """

    title: str
    curves: tuple[Curve, ...] = ()
    network: "Network | None" = None
