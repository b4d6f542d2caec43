"""What a study is: a question, the runs that answer it, and what they say."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bezoar._arrays import Floats
from bezoar._numbers import count
from bezoar._parts import maker
from bezoar.experiments import Prepared, Progress, RunSpec, prepare, train_all
from bezoar.networks import NetworkOverTime
from bezoar.report import LEAD, is_ahead

#: What all studies train with, unless they say otherwise: softmax regression on a part of MNIST.
SAMPLES, ITERATIONS, SEEDS = 1000, 300, 3

#: What rules are compared by: the mean test accuracy of the regular agents' own models.
METRIC = "accuracy_mean"

MEAN = "weighted_mean"


@dataclass(frozen=True)
class Case:
    """A run of a study, which is trained for every seed.

    Attributes:
        panel: the title of the plot that it belongs to.
        place: where it stands along the axis.
        rule: the rule, which is its curve.
        fields: other fields of its spec.
        over_time: from a seed to the networks that take the place of the spec's, if there are some.
    """

    panel: str
    place: str
    rule: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    over_time: Callable[[int], NetworkOverTime] | None = None


@dataclass(frozen=True)
class Results:
    """What was measured in a study.

    Attributes:
        cases: its cases.
        finals: ``[cases, seeds]`` the last accuracy of each case.
        ratios: ``[cases, seeds]`` of each case ``A/ξ``, the disturbance over the heterogeneity, on
            average over the start and the end.
    """

    cases: Sequence[Case]
    finals: Floats
    ratios: Floats

    @property
    def panels(self) -> list[str]:
        """The titles of the plots."""
        return list(dict.fromkeys(case.panel for case in self.cases))

    @property
    def rules(self) -> list[str]:
        """The rules, each a curve."""
        return list(dict.fromkeys(case.rule for case in self.cases))

    def places(self, panel: str) -> list[str]:
        """Where cases of a plot stand along its axis."""
        return list(dict.fromkeys(case.place for case in self.cases if case.panel == panel))

    @cached_property
    def _numbers(self) -> dict[tuple[str, str, str], int]:
        return {(c.panel, c.place, c.rule): number for number, c in enumerate(self.cases)}

    def at(self, panel: str, place: str, rule: str) -> Floats:
        """``[seeds]`` the last accuracies of a case; empty if there is no such case."""
        number = self._numbers.get((panel, place, rule))
        return np.empty(0) if number is None else self.finals[number]

    def mean(self, panel: str, place: str, rule: str) -> float:
        """Their mean."""
        return float(self.at(panel, place, rule).mean())

    def ratio(self, panel: str, place: str) -> float:
        """``A/ξ`` in the runs of the weighted mean, on average over the seeds."""
        number = self._numbers.get((panel, place, MEAN))
        return float("nan") if number is None else float(self.ratios[number].mean())

    def best(self, panel: str, place: str, among: Iterable[str] | None = None) -> str:
        """The rule with the highest mean accuracy."""
        rules = [r for r in (among or self.rules) if len(self.at(panel, place, r))]
        return max(rules, key=lambda rule: self.mean(panel, place, rule))

    def is_ahead(self, panel: str, place: str, rule: str, other: str) -> bool:
        """Whether the seeds can carry that a rule is better than another."""
        return is_ahead(self.at(panel, place, rule) - self.at(panel, place, other), LEAD)

    def told(self, panel: str, place: str, rule: str) -> str:
        """A rule and its accuracy, as ``IOS 0.831``."""
        return f"{label(rule)} {self.mean(panel, place, rule):.3f}"


@dataclass(frozen=True)
class Study:
    """A question and the runs that answer it.

    Attributes:
        name: what it is called on the command line.
        title: a heading.
        question: the question.
        axis: what changes along the axis of each plot.
        cases: makes its cases.
        answer: what the results say, a sentence each.
        fields: fields of all specs.
    """

    name: str
    title: str
    question: str
    axis: str
    cases: Callable[[], Sequence[Case]]
    answer: Callable[[Results], Sequence[str]]
    fields: Mapping[str, Any] = field(default_factory=dict)


def label(rule: str) -> str:
    """What a rule is called in texts: its label, and its options if it has some."""
    name, _, options = rule.partition(":")
    made: Any = maker("aggregator", name)
    return f"{made.label} {options}".strip()


def standings(results: Results, rules: Sequence[str]) -> str:
    """How many rules are behind and ahead of the weighted mean, over all panels and places."""
    behind = ahead = level = 0
    for panel in results.panels:
        for place in results.places(panel):
            for rule in rules:
                if results.is_ahead(panel, place, MEAN, rule):
                    behind += 1
                elif results.is_ahead(panel, place, rule, MEAN):
                    ahead += 1
                else:
                    level += 1
    return (
        f"of {count(behind + ahead + level, 'case')}, {behind} end behind {label(MEAN)}, {ahead} "
        f"ahead of it, and in {level} the seeds do not decide"
    )


def train_study(
    study: Study,
    seeds: int = SEEDS,
    samples: int = SAMPLES,
    iterations: int = ITERATIONS,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Train all cases of a study for seeds 0, 1, ….

    Args:
        study: which.
        seeds: how many seeds.
        samples: on how many training samples, drawn by the seed.
        iterations: how long.
        workers: how many threads; by default one a core. Results do not depend on it.
        progress: called after every iteration.
    """
    cases = study.cases()
    common = {
        "samples": samples,
        "iterations": iterations,
        "every": iterations,
        "metrics": (METRIC, "heterogeneity", "disturbance"),
        **study.fields,
    }
    runs: dict[Any, Prepared] = {}  # cases that are the same run are trained once
    trained = []
    for case in cases:
        for seed in range(seeds):
            fields = {**common, "aggregator": case.rule, **case.fields, "seed": seed}
            run = prepare(RunSpec.read(fields))
            key = (run.spec, case.over_time)
            if case.over_time is not None:
                run = replace(run, run=replace(run.run, network=case.over_time(seed)))
            runs.setdefault(key, run)
            trained.append(key)
    histories = dict(zip(runs, train_all(list(runs.values()), workers, progress), strict=True))
    ends = [
        (h[METRIC][-1], np.mean(h["disturbance"] / h["heterogeneity"]))
        for h in (histories[key] for key in trained)
    ]
    finals, ratios = np.array(ends).reshape(len(cases), seeds, 2).transpose(2, 0, 1)
    return Results(cases, finals, ratios)
