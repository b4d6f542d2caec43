"""How rules did on the networks of a study, for each kind of partition.

``study.csv`` is written by ``python -m benchmarks.advisor``; docs/results/advisor.md says how.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf
from statistics import fmean
from typing import NamedTuple

import numpy as np

from bezoar._errors import BezoarError
from bezoar.advice._pilot_results import RankedRule
from bezoar.advice._regret import Regret, by_regret
from bezoar.data import Dataset, Partition
from bezoar.experiments import Choice, RunSpec, partition_of

#: A rule is known if it was trained in this share of the cases of a partition: in few cases, other
#: rules may have had harder ones.
LEAST_SHARE = 0.5

#: How many agents the networks of the shipped study have, and the share of them that is poisoned.
AGENTS, SHARE = (9, 200), 0.1


class Outcome(NamedTuple):
    """How a rule did in the cases of a partition.

    Attributes:
        cases: how many cases it was trained in.
        regret_mean, regret_worst: what it lost against the best rule of a case, on average and at
            most.
        accuracy_mean, accuracy_worst: the agents' accuracy on average, and where it was lowest.
    """

    cases: int
    regret_mean: float
    regret_worst: float
    accuracy_mean: float
    accuracy_worst: float

    @property
    def regret(self) -> Regret:
        """What rules are ranked by."""
        return Regret(self.regret_worst, self.regret_mean)

    @classmethod
    def of(cls, losses: Sequence[float], accuracies: Sequence[float]) -> "Outcome":
        """The summary of some cases."""
        loss, accuracy = fmean(losses), fmean(accuracies)
        return cls(len(losses), loss, max(losses), accuracy, min(accuracies))


@dataclass(frozen=True)
class Study:
    """How rules did, by partition and by how the rule is typed."""

    outcomes: Mapping[str, Mapping[str, Outcome]]

    @classmethod
    def of(cls, cases: Iterable[tuple[str, Mapping[str, float]]]) -> "Study":
        """A study from the partition of every case, and the accuracy of every rule in it."""
        did: dict[str, dict[str, list[tuple[float, float]]]] = {}
        number = Counter[str]()
        for partition, accuracies in cases:
            number[partition] += 1
            best = max(accuracies.values())
            for rule, accuracy in accuracies.items():
                found = did.setdefault(partition, {}).setdefault(rule, [])
                found.append((best - accuracy, accuracy))
        return cls(
            {
                partition: {
                    rule: Outcome.of(*zip(*found, strict=True))
                    for rule, found in rules.items()
                    if len(found) >= LEAST_SHARE * number[partition]
                }
                for partition, rules in did.items()
            }
        )

    @classmethod
    def read(cls, text: str) -> "Study":
        """A study from a file's text; see :meth:`text`."""
        outcomes: dict[str, dict[str, Outcome]] = {}
        for partition, rule, cases, *numbers in list(csv.reader(text.splitlines()))[1:]:
            found = Outcome(int(cases), *map(float, numbers))
            outcomes.setdefault(partition, {})[rule] = found
        return cls(outcomes)

    def text(self) -> str:
        """As a file holds it, the best rule of a partition first."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["partition", "rule", *Outcome._fields])
        for partition, rules in self.outcomes.items():
            for rule in by_regret({rule: did.regret for rule, did in rules.items()}):
                cases, *numbers = rules[rule]
                writer.writerow([partition, rule, cases, *(f"{one:.5f}" for one in numbers)])
        return file.getvalue()

    @property
    def rules(self) -> list[str]:
        """All its rules, by how they are typed."""
        return list(dict.fromkeys(rule for rules in self.outcomes.values() for rule in rules))

    def ranking(self, kinds: Sequence[str], rules: Mapping[str, Choice]) -> list[RankedRule]:
        """Those of some rules that are known for all these partitions, by minimax regret.

        Every partition counts the same.
        """
        tables = [self.outcomes.get(kind, {}) for kind in kinds]
        found = dict[str, RankedRule]()
        for text, rule in rules.items():
            if all(text in table for table in tables):
                there = [table[text] for table in tables]
                found[text] = RankedRule(
                    aggregator=rule,
                    regret_mean=fmean(one.regret_mean for one in there),
                    regret_worst=max(one.regret_worst for one in there),
                    accuracy_mean=fmean(one.accuracy_mean for one in there),
                    accuracy_worst=min(one.accuracy_worst for one in there),
                    scenarios=sum(one.cases for one in there),
                )
        regrets = {text: Regret(did.regret_worst, did.regret_mean) for text, did in found.items()}
        return [found[text] for text in by_regret(regrets)]

    def kind(self, partition: str, dataset: Dataset, agents: int, seed: int) -> str:
        """The study's partition that a partition is most like, by how much classes differ.

        If the study has none, it is the partition itself.
        """
        if partition in self.outcomes or not self.outcomes:
            return partition

        def skew(text: str) -> float:
            spec = RunSpec.read({"partition": text, "seed": seed})
            try:
                return class_skew(partition_of(spec, agents, dataset), dataset)
            except BezoarError:  # so many agents cannot have samples divided like that
                return inf

        here = skew(partition)
        return min(self.outcomes, key=lambda text: abs(skew(text) - here))


def class_skew(partition: Partition, dataset: Dataset) -> float:
    """How far an agent's shares of classes are from those of all samples, on average.

    It is the total variation distance: 0 if they are the same, 1 if they have nothing in common.
    Agents without samples do not count.
    """
    held = partition.holdings(dataset.train_labels, dataset.classes)
    held = held[held.any(axis=1)]
    own, all_of_them = held / held.sum(axis=1, keepdims=True), held.sum(axis=0) / held.sum()
    return float(np.abs(own - all_of_them).sum(axis=1).mean() / 2)


@cache
def shipped_study() -> Study:
    """The study that comes with the package."""
    return Study.read(files("bezoar.advice").joinpath("study.csv").read_text(encoding="utf-8"))
