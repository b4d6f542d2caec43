"""Ways to judge a claim: each turns what one seed shows into a margin.

A margin is positive where the claim holds and negative where it does not; its size says by how
much. Margins of accuracies are in accuracy, margins of sizes in powers of ten. A margin is NaN
where a metric is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import ClassVar, Protocol

import numpy as np

from bezoar.aggregators import AGGREGATORS
from bezoar.experiments._findings import Floats, Seen
from bezoar.experiments._paper import BASELINE, PARTITION_TITLES, Place

#: Stands for zero where a logarithm is taken.
TINY = 1e-300


class Judgement(Protocol):
    """A way to judge; its other attributes say what is compared."""

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions it looks at."""
        ...

    @property
    def heading(self) -> str:
        """What the numbers are."""
        ...

    @property
    def form(self) -> str:
        """How to write them, as a format specification."""
        ...

    def margin(self, seen: Seen) -> float:
        """By how much the claim holds."""
        ...

    def numbers(self, seen: Seen) -> dict[str, float]:
        """What the margin was made from, by names that do not depend on the seed."""
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

    @property
    def partitions(self) -> tuple[str, ...]:
        return (self.partition,)

    def margin(self, seen: Seen) -> float:
        lowest = np.min(self._finals(seen, self.leaders))
        return float(lowest - np.max(self._finals(seen, self.others)) - self.by)

    def numbers(self, seen: Seen) -> dict[str, float]:
        rules = (*self.leaders, *self.others)
        return dict(zip(map(label, rules), self._finals(seen, rules), strict=True))

    def _finals(self, seen: Seen, rules: Iterable[str]) -> list[float]:
        return [seen.final(Place(self.network, self.partition, rule)) for rule in rules]


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

    @property
    def partitions(self) -> tuple[str, ...]:
        return (self.source[1], self.target[1])

    def margin(self, seen: Seen) -> float:
        lost = -np.sort(list(self.numbers(seen).values()))
        return float(lost[(self.least or len(lost)) - 1] - self.by)

    def numbers(self, seen: Seen) -> dict[str, float]:
        return {
            label(rule): seen.final(Place(*self.target, rule))
            - seen.final(Place(*self.source, rule))
            for rule in self.rules
        }


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

    @property
    def heading(self) -> str:
        return f"final {self.metric.replace('_', ' ')}"

    @property
    def partitions(self) -> tuple[str, ...]:
        return (self.partition,)

    def margin(self, seen: Seen) -> float:
        finals = _powers(list(self.numbers(seen).values()))
        inside = np.minimum(finals - np.log10(self.low), np.log10(self.high) - finals)
        return float(inside.min())

    def numbers(self, seen: Seen) -> dict[str, float]:
        places = {rule: Place(self.network, self.partition, rule) for rule in self.rules}
        return {label(rule): seen.final(place, self.metric) for rule, place in places.items()}


@dataclass(frozen=True)
class Rises:
    """A metric grows from partition to partition, for every rule and throughout training."""

    network: str
    partitions: tuple[str, ...]
    rules: tuple[str, ...]
    metric: str

    form: ClassVar[str] = ".3g"

    @property
    def heading(self) -> str:
        return f"final {self.metric} with {label(self.rules[0])}"

    def margin(self, seen: Seen) -> float:
        grown = []
        for rule in self.rules:
            places = [Place(self.network, partition, rule) for partition in self.partitions]
            curves = [_powers(seen.curve(place, self.metric)) for place in places]
            grown += [np.min(after - before) for before, after in pairwise(curves)]
        return float(np.min(grown))

    def numbers(self, seen: Seen) -> dict[str, float]:
        finals = {
            PARTITION_TITLES[partition]: seen.final(
                Place(self.network, partition, self.rules[0]), self.metric
            )
            for partition in self.partitions
        }
        return finals | {"smallest growth factor of all rules": 10 ** self.margin(seen)}


@dataclass(frozen=True)
class Alike:
    """Two metrics stay within a factor of each other, for every rule and throughout training."""

    network: str
    partition: str
    rules: tuple[str, ...]
    metrics: tuple[str, str]
    factor: float

    form: ClassVar[str] = ".3g"

    @property
    def heading(self) -> str:
        return " ÷ ".join(self.metrics)

    @property
    def partitions(self) -> tuple[str, ...]:
        return (self.partition,)

    def margin(self, seen: Seen) -> float:
        return float(np.log10(self.factor) - np.max(np.abs(_powers(self._ratios(seen)))))

    def numbers(self, seen: Seen) -> dict[str, float]:
        ratios = self._ratios(seen)
        return {"smallest": float(ratios.min()), "largest": float(ratios.max())}

    def _ratios(self, seen: Seen) -> Floats:
        """The ratios of all rules at all measurements."""
        ratios = []
        for rule in self.rules:
            place = Place(self.network, self.partition, rule)
            above, below = (seen.curve(place, metric) for metric in self.metrics)
            ratios.append(above / np.maximum(below, TINY))
        return np.concatenate(ratios)


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

    @property
    def heading(self) -> str:
        return self.metric

    def margin(self, seen: Seen) -> float:
        growths = [_growth(curve) for curve in self._curves(seen)]
        return float(np.log10(self.factor) - np.max(_powers(growths)))

    def numbers(self, seen: Seen) -> dict[str, float]:
        curves = self._curves(seen)
        return {
            "largest": float(np.max([curve.max() for curve in curves])),
            "largest growth factor": float(np.max([_growth(curve) for curve in curves])),
        }

    def _curves(self, seen: Seen) -> list[Floats]:
        places = product([self.network], self.partitions, self.rules)
        return [seen.curve(Place(*place), self.metric) for place in places]


def label(rule: str) -> str:
    """The paper's name of a rule."""
    return "Baseline" if rule == BASELINE else AGGREGATORS[rule].label


def _growth(curve: Floats) -> float:
    """The largest value in the second half over that in the first."""
    middle = (len(curve) + 1) // 2
    first, second = np.max(curve[:middle]), np.max(curve[middle:], initial=0.0)
    return float(second / np.maximum(first, TINY))


def _powers(values: Floats | list[float]) -> Floats:
    """The decimal logarithm, of zero a very low one."""
    powers: Floats = np.log10(np.maximum(values, TINY))
    return powers
