"""What rules lost on the networks of a study, for each kind of partition.

``study.csv`` is written by ``python -m benchmarks.advisor``; docs/results/advisor.md says how.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf, sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

from bezoar._errors import BezoarError
from bezoar.data import Dataset, Partition
from bezoar.experiments import RunSpec, partition_of

#: A rule is known if it was trained in this share of the cases of a partition: in few cases, other
#: rules may have had harder ones.
LEAST_SHARE = 0.5


class Loss(NamedTuple):
    """What a rule lost against the best rule of a case: so many cases, mean, root mean square."""

    cases: int
    mean: float
    root_mean_square: float

    @classmethod
    def of(cls, losses: Sequence[float]) -> "Loss":
        """The summary of some losses."""
        squares = np.square(losses).mean()
        return cls(len(losses), float(np.mean(losses)), float(np.sqrt(squares)))


@dataclass(frozen=True)
class Study:
    """What rules lost, by partition and by how the rule is typed."""

    losses: Mapping[str, Mapping[str, Loss]]

    @classmethod
    def of(cls, cases: Iterable[tuple[str, Mapping[str, float]]]) -> "Study":
        """A study from the partition of every case, and the accuracy of every rule in it."""
        lost: dict[str, dict[str, list[float]]] = {}
        number = Counter[str]()
        for partition, accuracies in cases:
            number[partition] += 1
            best = max(accuracies.values())
            for rule, accuracy in accuracies.items():
                lost.setdefault(partition, {}).setdefault(rule, []).append(best - accuracy)
        return cls(
            {
                partition: {
                    rule: Loss.of(losses)
                    for rule, losses in rules.items()
                    if len(losses) >= LEAST_SHARE * number[partition]
                }
                for partition, rules in lost.items()
            }
        )

    @classmethod
    def read(cls, text: str) -> "Study":
        """A study from a file's text; see :meth:`text`."""
        losses: dict[str, dict[str, Loss]] = {}
        for partition, rule, cases, *numbers in list(csv.reader(text.splitlines()))[1:]:
            found = Loss(int(cases), *map(float, numbers))
            losses.setdefault(partition, {})[rule] = found
        return cls(losses)

    def text(self) -> str:
        """As a file holds it, the best rule of a partition first."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["partition", "rule", *Loss._fields])
        for partition, rules in self.losses.items():
            for rule, loss in sorted(rules.items(), key=lambda item: item[1].root_mean_square):
                numbers = (f"{loss.mean:.5f}", f"{loss.root_mean_square:.5f}")
                writer.writerow([partition, rule, loss.cases, *numbers])
        return file.getvalue()

    def known(self, kinds: Sequence[str]) -> dict[str, float]:
        """For rules that are known for all these partitions, the root mean square loss."""
        tables = [self.losses.get(kind, {}) for kind in kinds]
        return {
            rule: sqrt(sum(table[rule].root_mean_square ** 2 for table in tables) / len(tables))
            for rule in tables[0]
            if all(rule in table for table in tables)
        }

    def kind(self, partition: str, dataset: Dataset, agents: int, seed: int) -> str:
        """The study's partition that a partition is most like, by how much classes differ.

        If the study has none, it is the partition itself.
        """
        if partition in self.losses or not self.losses:
            return partition

        def skew(text: str) -> float:
            spec = RunSpec.read({"partition": text, "seed": seed})
            try:
                return class_skew(partition_of(spec, agents, dataset), dataset)
            except BezoarError:  # so many agents cannot have samples divided like that
                return inf

        here = skew(partition)
        return min(self.losses, key=lambda text: abs(skew(text) - here))


def for_all(known: Mapping[str, float], rules: Iterable[str]) -> dict[str, float]:
    """What is known, and its median for the rules that nothing is known of.

    Nobody has checked those on other networks, so they do not pass for better than most.
    """
    if not known:
        return {}
    return dict.fromkeys(rules, median(known.values())) | dict(known)


def class_skew(partition: Partition, dataset: Dataset) -> float:
    """How far an agent's shares of classes are from those of all samples, on average.

    It is the total variation distance: 0 if they are the same, 1 if they have nothing in common.
    """
    held = partition.holdings(dataset.train_labels, dataset.classes)
    own, all_of_them = held / held.sum(axis=1, keepdims=True), held.sum(axis=0) / held.sum()
    return float(np.abs(own - all_of_them).sum(axis=1).mean() / 2)


@cache
def shipped_study() -> Study:
    """The study that comes with the package."""
    return Study.read(files("bezoar.advice").joinpath("study.csv").read_text(encoding="utf-8"))
