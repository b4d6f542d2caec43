"""Ways to judge a claim: each turns the curves of a figure into a margin for every seed.

A margin is positive where the claim holds and negative where it does not; its size says by how
much. Margins of accuracies are in accuracy, margins of sizes in powers of ten. A margin is NaN
where a metric is. Curves on which nothing is random have one run, which stands for every seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bezoar._errors import BezoarError
from bezoar.paper._settings import PARTITION_TITLES, Place
from bezoar.report import Curve, look

Floats = NDArray[np.float64]
Curves = Mapping[Place, Curve]

#: Stands for zero where a logarithm is taken.
TINY = 1e-300


#: Margins nearer to zero than this decide nothing: of accuracies, and in powers of ten.
ACCURACY, POWER = 0.01, 0.05


class MissingRunError(BezoarError):
    """A run that is asked for is not among those given."""


class Criterion(Protocol):
    """A way to judge; its other attributes say what is compared."""

    @property
    def heading(self) -> str:
        """What the numbers are."""
        ...

    @property
    def form(self) -> str:
        """How to write them, as a format specification."""
        ...

    @property
    def resolution(self) -> float:
        """Margins nearer to zero than this decide nothing."""
        ...

    def margin(self, curves: Curves) -> Floats:
        """``[seeds]`` by how much the claim holds."""
        ...

    def numbers(self, curves: Curves) -> dict[str, Floats]:
        """``[seeds]`` what the margin was made from, by name."""
        ...


@dataclass(frozen=True)
class Ahead:
    """Some rules end more accurate than others.

    Every one of ``leaders`` above every one of ``others``, by more than ``by``, which is negative
    where being near is enough.
    """

    network: str
    partition: str
    leaders: tuple[str, ...]
    others: tuple[str, ...]
    by: float = 0.0

    heading: ClassVar[str] = "final accuracy"
    form: ClassVar[str] = ".3f"
    resolution: ClassVar[float] = ACCURACY

    def margin(self, curves: Curves) -> Floats:
        lowest = self._finals(curves, self.leaders).min(axis=0)
        return np.asarray(lowest - self._finals(curves, self.others).max(axis=0) - self.by)

    def numbers(self, curves: Curves) -> dict[str, Floats]:
        rules = (*self.leaders, *self.others)
        return dict(zip(_labels(rules), self._finals(curves, rules), strict=True))

    def _finals(self, curves: Curves, rules: Iterable[str]) -> Floats:
        return _stack([_final(curves, (self.network, self.partition, rule)) for rule in rules])


@dataclass(frozen=True)
class Drops:
    """Rules end less accurate in one setting than in another.

    From ``source`` to ``target``, each a network and a partition, at least ``least`` of the rules
    (by default all) lose more than ``by``.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    rules: tuple[str, ...]
    by: float = 0.0
    least: int | None = None

    heading: ClassVar[str] = "change of final accuracy"
    form: ClassVar[str] = "+.3f"
    resolution: ClassVar[float] = ACCURACY

    def margin(self, curves: Curves) -> Floats:
        lost = -np.sort(_stack(list(self.numbers(curves).values())), axis=0)
        return np.asarray(lost[(self.least or len(lost)) - 1] - self.by)

    def numbers(self, curves: Curves) -> dict[str, Floats]:
        changes = (
            _final(curves, (*self.target, rule)) - _final(curves, (*self.source, rule))
            for rule in self.rules
        )
        return dict(zip(_labels(self.rules), changes, strict=True))


@dataclass(frozen=True)
class Between:
    """A metric of every rule ends between two values."""

    network: str
    partition: str
    rules: tuple[str, ...]
    metric: str
    low: float
    high: float

    form: ClassVar[str] = ".1e"
    resolution: ClassVar[float] = POWER

    @property
    def heading(self) -> str:
        return f"final {self.metric.replace('_', ' ')}"

    def margin(self, curves: Curves) -> Floats:
        finals = _powers(_stack(list(self.numbers(curves).values())))
        inside = np.minimum(finals - np.log10(self.low), np.log10(self.high) - finals)
        return np.asarray(inside.min(axis=0))

    def numbers(self, curves: Curves) -> dict[str, Floats]:
        places = [(self.network, self.partition, rule) for rule in self.rules]
        finals = (_final(curves, place, self.metric) for place in places)
        return dict(zip(_labels(self.rules), finals, strict=True))


@dataclass(frozen=True)
class Rises:
    """A metric grows from partition to partition, for every rule and throughout training."""

    network: str
    partitions: tuple[str, ...]
    rules: tuple[str, ...]
    metric: str

    form: ClassVar[str] = ".3g"
    resolution: ClassVar[float] = POWER

    @property
    def heading(self) -> str:
        return f"final {self.metric} with {look(self.rules[0]).label}"

    def margin(self, curves: Curves) -> Floats:
        grown = [
            (
                _powers(_values(curves, (self.network, after, rule), self.metric))
                - _powers(_values(curves, (self.network, before, rule), self.metric))
            ).min(axis=1)
            for rule in self.rules
            for before, after in pairwise(self.partitions)
        ]
        return np.asarray(_stack(grown).min(axis=0))

    def numbers(self, curves: Curves) -> dict[str, Floats]:
        finals = {
            PARTITION_TITLES[partition]: _final(
                curves, (self.network, partition, self.rules[0]), self.metric
            )
            for partition in self.partitions
        }
        return finals | {"smallest growth factor of all rules": 10 ** self.margin(curves)}


@dataclass(frozen=True)
class Alike:
    """Two metrics stay within a factor of each other, for every rule and throughout training."""

    network: str
    partition: str
    rules: tuple[str, ...]
    metrics: tuple[str, str]
    factor: float

    form: ClassVar[str] = ".3g"
    resolution: ClassVar[float] = POWER

    @property
    def heading(self) -> str:
        return " ÷ ".join(self.metrics)

    def margin(self, curves: Curves) -> Floats:
        apart = np.abs(_powers(self._ratios(curves))).max(axis=(0, 2))
        return np.asarray(np.log10(self.factor) - apart)

    def numbers(self, curves: Curves) -> dict[str, Floats]:
        ratios = self._ratios(curves)
        return {"smallest": ratios.min(axis=(0, 2)), "largest": ratios.max(axis=(0, 2))}

    def _ratios(self, curves: Curves) -> Floats:
        """``[rules, seeds, n]``."""
        ratios = []
        for rule in self.rules:
            place = (self.network, self.partition, rule)
            above, below = (_values(curves, place, metric) for metric in self.metrics)
            ratios.append(above / np.maximum(below, TINY))
        return _stack(ratios)


@dataclass(frozen=True)
class Settles:
    """A metric has stopped growing, for every rule and partition.

    Its largest value in the second half of training is at most ``factor`` times that in the first.
    """

    network: str
    partitions: tuple[str, ...]
    rules: tuple[str, ...]
    metric: str
    factor: float

    form: ClassVar[str] = ".3g"
    resolution: ClassVar[float] = POWER

    @property
    def heading(self) -> str:
        return self.metric

    def margin(self, curves: Curves) -> Floats:
        return np.asarray(np.log10(self.factor) - _powers(self._growth(curves)))

    def numbers(self, curves: Curves) -> dict[str, Floats]:
        largest = self._all(curves).max(axis=(0, 2))
        return {"largest": largest, "largest growth factor": self._growth(curves)}

    def _growth(self, curves: Curves) -> Floats:
        """``[seeds]`` the largest, of all curves, of the second half's maximum over the first's."""
        values = self._all(curves)
        middle = (values.shape[2] + 1) // 2
        first = values[:, :, :middle].max(axis=2)
        second = values[:, :, middle:].max(axis=2, initial=0.0)
        return np.asarray((second / np.maximum(first, TINY)).max(axis=0))

    def _all(self, curves: Curves) -> Floats:
        """``[curves, seeds, n]``."""
        places = product([self.network], self.partitions, self.rules)
        return _stack([_values(curves, place, self.metric) for place in places])


def _values(curves: Curves, place: tuple[str, str, str], metric: str) -> Floats:
    """``[seeds, n]`` a metric along the runs of a place."""
    found = Place(*place)
    if found not in curves:
        raise MissingRunError(
            f"the run of {found.rule} on {found.network} ({found.partition}) is missing"
        )
    return curves[found].values(metric)


def _final(curves: Curves, place: tuple[str, str, str], metric: str = "accuracy") -> Floats:
    """``[seeds]`` a metric at the end of the runs of a place."""
    return _values(curves, place, metric)[:, -1]


def _stack(arrays: Sequence[Floats]) -> Floats:
    """Arrays as one; a single run stands for every seed."""
    return np.stack(np.broadcast_arrays(*arrays))


def _labels(rules: Iterable[str]) -> list[str]:
    return [look(rule).label for rule in rules]


def _powers(values: ArrayLike) -> Floats:
    """The decimal logarithm, of zero a very low one."""
    powers: Floats = np.log10(np.maximum(values, TINY))
    return powers
