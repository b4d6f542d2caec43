"""Ways to judge a claim: each turns the curves of a figure into a margin for every seed.

A margin is positive where the claim holds and negative where it does not; its size says by how
much. Margins of accuracies are in accuracy, margins of sizes in powers of ten. A margin is NaN
where a metric is. Curves on which nothing is random have one run, which stands for every seed.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import ClassVar

import numpy as np

from bezoar._arrays import Floats, Ints
from bezoar._errors import BezoarError
from bezoar.paper._comparisons import PARTITION_TITLES, Place
from bezoar.report import Curve, look

#: Stands for zero where a logarithm is taken.
TINY = 1e-300

#: Margins in powers of ten nearer to zero than this decide nothing: a factor of 1.12.
POWER = 0.05


class MissingRunError(BezoarError):
    """A run that is asked for is not among those given."""


@dataclass(frozen=True)
class Curves:
    """The curves of a comparison.

    Attributes:
        by_place: the curves.
        metrics: for a metric that criteria name, the one that is looked at in its place.
        tests: how many samples accuracies were measured on.
        last: the last iteration that is looked at; by default that of the runs.
    """

    by_place: Mapping[Place, Curve]
    metrics: Mapping[str, str] = field(default_factory=dict)
    tests: int = 10_000
    last: int | None = None

    @property
    def lengths(self) -> Ints:
        """``[n]`` after how many iterations all runs were measured, without the start."""
        several = (curve.iterations for curve in self.by_place.values())
        found: Ints = reduce(np.intersect1d, several)
        return found[found > 0]

    def until(self, last: int) -> "Curves":
        """The curves of runs that end with this iteration."""
        return replace(self, last=last)

    def values(self, network: str, partition: str, rule: str, metric: str) -> Floats:
        """``[seeds, n]`` a metric along the runs of a place."""
        place = Place(network, partition, rule)
        if place not in self.by_place:
            raise MissingRunError(f"the run of {rule} on {network} ({partition}) is missing")
        curve = self.by_place[place]
        values = curve.values(self.metrics.get(metric, metric))
        return values if self.last is None else values[:, curve.iterations <= self.last]

    def finals(self, network: str, partition: str, rule: str, metric: str = "accuracy") -> Floats:
        """``[seeds]`` a metric at the end of the runs of a place."""
        return self.values(network, partition, rule, metric)[:, -1]

    @property
    def resolution(self) -> float:
        """Margins of accuracies nearer to zero than this decide nothing.

        It is two standard errors ``2√(p(1−p)/n)`` on ``n`` samples, with ``p`` the highest accuracy
        or 0.5 if that is less: equally good models may well differ by so much.
        """
        finals = [np.zeros(1), *(self.finals(*place) for place in self.by_place)]
        highest = np.nan_to_num(np.concatenate(finals), nan=0.5).max().clip(max=0.5)
        return float(2 * np.sqrt(highest * (1 - highest) / self.tests))


@dataclass(frozen=True)
class Criterion(ABC):
    """A way to judge; the fields of a subclass say what is compared.

    Attributes:
        form: how to write the numbers, as a format specification.
        of_accuracy: whether margins are in accuracy, not in powers of ten.
    """

    form: ClassVar[str] = ".3g"
    of_accuracy: ClassVar[bool] = False

    @property
    @abstractmethod
    def heading(self) -> str:
        """What the numbers are."""

    def involves(self, *rules: str) -> bool:
        """Whether some of these rules are compared."""
        compared = [value for value in vars(self).values() if isinstance(value, tuple)]
        return any(rule in several for several in compared for rule in rules)

    def resolution(self, curves: Curves) -> float:
        """Margins nearer to zero than this decide nothing."""
        return curves.resolution if self.of_accuracy else POWER

    @abstractmethod
    def judge(self, curves: Curves) -> tuple[Floats, dict[str, Floats]]:
        """``[seeds]`` by how much the claim holds, and by name the numbers that this follows from.

        Raises:
            MissingRunError: where a curve is not among those given.
        """


@dataclass(frozen=True)
class Ahead(Criterion):
    """Some rules end more accurate than others.

    Every one of ``leaders`` above every one of ``others``, by more than ``by``, which is negative
    where being near is enough, and by more than ``share`` of the lowest leader's accuracy. All but
    the best ``top − 1`` of the others are enough.
    """

    network: str
    partition: str
    leaders: tuple[str, ...]
    others: tuple[str, ...]
    by: float = 0.0
    share: float = 0.0
    top: int = 1

    form = ".3f"
    of_accuracy = True
    heading = "final accuracy"

    def judge(self, curves: Curves) -> tuple[Floats, dict[str, Floats]]:
        rules = (*self.leaders, *self.others)
        finals = _stack(curves.finals(self.network, self.partition, rule) for rule in rules)
        lowest = finals[: len(self.leaders)].min(0)
        highest = np.sort(finals[len(self.leaders) :], axis=0)[-self.top]
        margin = (1 - self.share) * lowest - highest - self.by
        if self.by < 0:  # where even an accuracy of zero is near enough, nothing can be told
            margin = np.where(highest > -self.by, margin, np.nan)
        return margin, dict(zip(_labels(rules), finals, strict=True))


@dataclass(frozen=True)
class Drops(Criterion):
    """Rules end less accurate in one setting than in another.

    From ``source`` to ``target``, each a network and a partition, at least ``least`` of the rules
    (by default all) lose more than ``by`` and ``share`` of their accuracy.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    rules: tuple[str, ...]
    by: float = 0.0
    share: float = 0.0
    least: int | None = None

    form = "+.3f"
    of_accuracy = True
    heading = "change of final accuracy"

    def judge(self, curves: Curves) -> tuple[Floats, dict[str, Floats]]:
        before = _stack(curves.finals(*self.source, rule) for rule in self.rules)
        changes = _stack(curves.finals(*self.target, rule) for rule in self.rules) - before
        short = np.sort(changes + self.share * before, axis=0)[(self.least or len(self.rules)) - 1]
        return -short - self.by, dict(zip(_labels(self.rules), changes, strict=True))


@dataclass(frozen=True)
class Between(Criterion):
    """A metric of every rule ends between two values."""

    network: str
    partition: str
    rules: tuple[str, ...]
    metric: str
    low: float
    high: float

    form = ".1e"

    @property
    def heading(self) -> str:
        return f"final {self.metric.replace('_', ' ')}"

    def judge(self, curves: Curves) -> tuple[Floats, dict[str, Floats]]:
        where = (self.network, self.partition)
        finals = _stack(curves.finals(*where, rule, self.metric) for rule in self.rules)
        powers = _powers(finals)
        inside = np.minimum(powers - np.log10(self.low), np.log10(self.high) - powers)
        return inside.min(0), dict(zip(_labels(self.rules), finals, strict=True))


@dataclass(frozen=True)
class Rises(Criterion):
    """A metric grows from partition to partition, for every rule and throughout training."""

    network: str
    partitions: tuple[str, ...]
    rules: tuple[str, ...]
    metric: str

    @property
    def heading(self) -> str:
        return f"final {self.metric} with {look(self.rules[0]).label}"

    def judge(self, curves: Curves) -> tuple[Floats, dict[str, Floats]]:
        values = _stack(
            curves.values(self.network, partition, rule, self.metric)
            for partition in self.partitions
            for rule in self.rules
        )
        by_partition = values.reshape(len(self.partitions), len(self.rules), *values.shape[1:])
        margin = np.diff(_powers(by_partition), axis=0).min(axis=(0, 1, 3))
        titles = [PARTITION_TITLES[partition] for partition in self.partitions]
        numbers = dict(zip(titles, by_partition[:, 0, :, -1], strict=True))
        return margin, numbers | {"smallest growth factor of all rules": 10**margin}


@dataclass(frozen=True)
class Alike(Criterion):
    """Two metrics stay within a factor of each other, for every rule and throughout training."""

    network: str
    partition: str
    rules: tuple[str, ...]
    metrics: tuple[str, str]
    factor: float

    @property
    def heading(self) -> str:
        return " ÷ ".join(self.metrics)

    def judge(self, curves: Curves) -> tuple[Floats, dict[str, Floats]]:
        above, below = (
            _stack(curves.values(self.network, self.partition, r, metric) for r in self.rules)
            for metric in self.metrics
        )
        ratios = above / np.maximum(below, TINY)
        margin = np.log10(self.factor) - np.abs(_powers(ratios)).max(axis=(0, 2))
        return margin, {"smallest": ratios.min(axis=(0, 2)), "largest": ratios.max(axis=(0, 2))}


@dataclass(frozen=True)
class Settles(Criterion):
    """A metric has stopped growing, for every rule and partition.

    Its largest value in the second half of training is at most ``factor`` times that in the first.
    """

    network: str
    partitions: tuple[str, ...]
    rules: tuple[str, ...]
    metric: str
    factor: float

    @property
    def heading(self) -> str:
        return self.metric

    def judge(self, curves: Curves) -> tuple[Floats, dict[str, Floats]]:
        places = product([self.network], self.partitions, self.rules)
        values = _stack(curves.values(*place, self.metric) for place in places)
        middle = (values.shape[2] + 1) // 2
        first, second = values[:, :, :middle].max(2), values[:, :, middle:].max(2, initial=0.0)
        growth = (second / np.maximum(first, TINY)).max(0)
        numbers = {"largest": values.max(axis=(0, 2)), "largest growth factor": growth}
        return np.log10(self.factor) - _powers(growth), numbers


def _stack(arrays: Iterable[Floats]) -> Floats:
    """Arrays stacked into one; a single run is repeated for every seed."""
    return np.stack(np.broadcast_arrays(*arrays))


def _labels(rules: Iterable[str]) -> list[str]:
    return [look(rule).label for rule in rules]


def _powers(values: Floats) -> Floats:
    """The decimal logarithm; a very low number for zero."""
    return np.asarray(np.log10(np.maximum(values, TINY)))
