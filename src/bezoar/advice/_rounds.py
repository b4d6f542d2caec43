"""Rounds of pilots: how much is tried, and which rules are tried on."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

from bezoar._errors import BezoarError
from bezoar.advice._pilot_results import PilotResults
from bezoar.advice._pilots import LONGEST, SHORTEST, TIMES, train_pilots
from bezoar.advice._scenarios import Scenario, rounds
from bezoar.data import Dataset
from bezoar.experiments import Choice
from bezoar.networks import Network

#: Iterations that are timed to choose the length of pilots. The last one is measured, too.
TIMED = 5

#: Scenarios of a partition at the most; more would say the same again.
MOST_SCENARIOS = 49

#: After the first round, in which all rules are tried, so many go on.
GO_ON = 6

#: Called with how much is done, how much there is to do, and what is going on. Both numbers are
#: seconds, or scenarios if an effort was given.
Progress = Callable[[float, float, str], Any]

#: Called with the scenarios that are done, and what is going on.
Tell = Callable[[float, str], Any]


class Effort(NamedTuple):
    """How much is tried: scenarios, and the iterations of each.

    Scenarios come in rounds, and a round that was begun is finished. The same effort gives the
    same pilots, whatever else the machine does.
    """

    scenarios: int
    iterations: int


@dataclass(frozen=True, eq=False)
class Question:
    """What pilots are asked about.

    Attributes:
        network: with nobody poisoned.
        poisoned: how many agents may be.
        partitions, attacks: what may happen.
        rules: the candidates, by how they are typed.
        known: of rules that a study knows, the best first, their mean regret there.
        dataset: what is learned from; small.
        seed: every random choice follows from it.
    """

    network: Network
    poisoned: Sequence[int]
    partitions: Sequence[str]
    attacks: Sequence[str]
    rules: Mapping[str, Choice]
    known: Mapping[str, float]
    dataset: Dataset
    seed: int

    def rounds(self) -> Iterator[list[list[Scenario]]]:
        """The scenarios to try, one round after the other."""
        return rounds(self.network, self.poisoned, self.partitions, self.attacks, self.seed)

    def best_known(self) -> list[str]:
        """The rules that did best in the study, as many as go on after the first round."""
        return [text for text in self.known if text in self.rules][:GO_ON]


def within_effort(
    question: Question, effort: Effort, workers: int | None, progress: Progress | None
) -> PilotResults:
    """Try the rules in so many scenarios."""

    def tell(done: float, text: str) -> None:
        if progress is not None:
            progress(min(done, effort.scenarios), effort.scenarios, text)

    return _pilots(question, effort, inf, workers, tell)


def within_time(
    question: Question,
    began: float,
    seconds: float,
    workers: int | None,
    progress: Progress | None,
) -> PilotResults:
    """Try the rules until so many seconds have passed since ``time.monotonic()`` was ``began``."""

    def tell(_: float, text: str) -> None:
        if progress is not None:
            progress(time.monotonic() - began, seconds, text)

    deadline = began + seconds
    question, iterations = _within(question, deadline, workers, tell)
    effort = Effort(MOST_SCENARIOS * len(question.partitions), iterations)
    found = _pilots(question, effort, deadline, workers, tell)
    if not found.scenarios:
        raise BezoarError(f"budget: {seconds:g} seconds are too short for one pilot; give more")
    return found


def _pilots(
    question: Question,
    effort: Effort,
    deadline: float,
    workers: int | None,
    tell: Tell,
) -> PilotResults:
    """Rounds of pilots, until there are enough scenarios or no time for another round."""
    found = PilotResults.none_yet(question.rules)
    for groups in question.rounds():
        kept, began = found.hopeful(GO_ON, question.known), time.monotonic()
        for group in groups:
            text = f"{len(kept)} rules, {group[0].partition}"
            share = len(group) / effort.iterations
            tick = partial(_tick, tell, text, len(found.scenarios), share)
            accuracy, measured = train_pilots(
                kept, group, question.dataset, effort.iterations, deadline, workers, tick
            )
            # A pilot that was cut short counts only where there is nothing better.
            if measured == effort.iterations or (measured and not found.scenarios):
                found = found.and_these(kept, group, accuracy, measured)
        enough = len(found.scenarios) >= effort.scenarios
        if enough or deadline - time.monotonic() < time.monotonic() - began:
            break
    return found


def _tick(tell: Tell, text: str, done: float, share: float, iteration: int) -> None:
    """Tell of scenarios that were done before, and of a share of some for every iteration."""
    tell(done + share * iteration, text)


def _within(
    question: Question, deadline: float, workers: int | None, tell: Tell
) -> tuple[Question, int]:
    """How long pilots can be if the first two rounds are to fit; found by timing a few iterations.

    If there is no time even for short ones, only the rules that did best in the study are tried.
    """
    groups, others = (groups for groups, _ in zip(question.rounds(), range(2), strict=False))
    ticks = []

    def tick(_: int) -> None:
        tell(0, "timing")
        ticks.append(time.monotonic())

    few = {text: question.rules[text] for text in question.best_known()}
    timed = few or question.rules
    train_pilots(timed, groups[0], question.dataset, TIMED, deadline, workers, tick, 1)
    if len(ticks) < TIMED:
        return replace(question, rules=timed), SHORTEST
    iteration = (ticks[-2] - ticks[0]) / (TIMED - 2) / len(timed)
    measuring = max(0.0, (ticks[-1] - ticks[-2]) / len(timed) - iteration)
    for rules in (question.rules, timed):
        runs = len(groups) * (len(rules) + min(GO_ON, len(rules)) * len(others[0]))
        length = int(((deadline - ticks[-1]) / runs - (TIMES + 1) * measuring) / iteration)
        if length >= SHORTEST:
            return replace(question, rules=rules), min(length, LONGEST)
    return replace(question, rules=timed), SHORTEST
