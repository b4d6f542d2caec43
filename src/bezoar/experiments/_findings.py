"""What the runs of a figure measured: curve by curve, and seed by seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.experiments._paper import DRAWN, Cell, Place

Floats = NDArray[np.float64]


class Measured(Protocol):
    """Measurements along a run: a history, or a run in a store."""

    @property
    def iterations(self) -> NDArray[np.int64]:
        """``[n]`` after how many iterations."""
        ...

    def __getitem__(self, metric: str) -> Floats:
        """``[n]`` the values of a metric."""
        ...


class MissingRunError(BezoarError):
    """A run that is asked for is not among those given."""

    def __init__(self, place: Place) -> None:
        super().__init__(
            f"the run of {place.rule} on {place.network} ({place.partition}) is missing"
        )


@dataclass(frozen=True)
class Band:
    """Runs that differ in their seeds alone, as one curve: the mean and the range.

    Attributes:
        runs: at least one, measured after the same iterations.
    """

    runs: tuple[Measured, ...]

    @property
    def iterations(self) -> NDArray[np.int64]:
        """``[n]`` after how many iterations."""
        return self.runs[0].iterations

    def __getitem__(self, metric: str) -> Floats:
        """``[n]`` the mean over the seeds."""
        mean: Floats = self._values(metric).mean(axis=0)
        return mean

    def limits(self, metric: str) -> tuple[Floats, Floats]:
        """``[n]`` and ``[n]``: the smallest and the largest value of the seeds."""
        values = self._values(metric)
        return values.min(axis=0), values.max(axis=0)

    def _values(self, metric: str) -> Floats:
        return np.stack([np.asarray(run[metric], dtype=np.float64) for run in self.runs])


@dataclass(frozen=True)
class Seen:
    """What one seed shows: a run for every curve."""

    runs: Mapping[Place, Measured]

    def curve(self, place: Place, metric: str = "accuracy") -> Floats:
        """``[n]`` the values of a metric along a run."""
        if place not in self.runs:
            raise MissingRunError(place)
        return np.asarray(self.runs[place][metric], dtype=np.float64)

    def final(self, place: Place, metric: str = "accuracy") -> float:
        """A metric at the end of a run."""
        return float(self.curve(place, metric)[-1])


@dataclass(frozen=True)
class Findings:
    """What the runs of a figure measured.

    Attributes:
        runs: for every curve its runs by seed. Curves on which nothing is random have one run,
            which stands for every seed.
    """

    runs: Mapping[Place, Mapping[int, Measured]]

    @classmethod
    def collect(cls, cells: Sequence[Cell], runs: Sequence[Measured]) -> "Findings":
        """Sort the runs of cells, one each."""
        found: dict[Place, dict[int, Measured]] = {}
        for cell, run in zip(cells, runs, strict=True):
            found.setdefault(cell.place, {})[cell.spec.seed] = run
        return cls(found)

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds there are runs of."""
        return tuple(sorted({seed for runs in self.runs.values() for seed in runs}))

    def band(self, place: Place) -> Band:
        """The runs of a curve, over their seeds."""
        if place not in self.runs:
            raise MissingRunError(place)
        return Band(tuple(self.runs[place].values()))

    def seen(self, seed: int) -> Seen:
        """What a seed shows; of curves on which nothing is random, their one run."""
        return Seen(
            {
                place: run
                for place, runs in self.runs.items()
                for own, run in runs.items()
                if own == seed or place.partition not in DRAWN
            }
        )
