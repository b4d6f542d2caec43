"""Which rule should the agents of a network use? Asked of pilots, answered by minimax regret."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar.advice._candidates import candidates, named
from bezoar.advice._pilot_results import PilotResults, RankedRule
from bezoar.advice._pilots import LONGEST, SHORTEST, TIMES, pilot_data, train_pilots
from bezoar.advice._reasons import reasons, reasons_of_theory
from bezoar.advice._scenarios import ATTACKS, PARTITIONS, Scenario, rounds
from bezoar.data import Dataset
from bezoar.experiments import Choice, RunSpec, dataset_of, network_of
from bezoar.networks import Network

#: Seconds.
BUDGET = 300.0

#: Iterations that are timed to choose the length of pilots. The last one is measured, too.
TIMED = 5

#: Rounds of scenarios at the most; more would say the same again.
MOST_ROUNDS = 8

#: The shares of poisoned agents that are tried where their number is not known.
UNKNOWN = (0.1, 0.2)

#: Called with the seconds used, the seconds there are, and what is going on.
Progress = Callable[[float, float, str], Any]


@dataclass(frozen=True, eq=False)
class Advice:
    """A recommended rule, and why.

    Attributes:
        network: the network that was asked about.
        poisoned: how many agents were assumed to be poisoned.
        recommended: the rule, with its options.
        ranking: all rules, the best first; empty if nothing was tried.
        reasons: sentences that can be checked against the pilots and the theory.
        impossible: for each rule that cannot be applied at some agent, why.
        pilots: what was tried, and what came out; ``None`` if only the theory was asked.
    """

    network: Network
    poisoned: tuple[int, ...]
    recommended: Choice
    ranking: Sequence[RankedRule]
    reasons: Sequence[str]
    impossible: dict[str, str]
    pilots: PilotResults | None

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        scenarios = [] if self.pilots is None else self.pilots.scenarios
        return {
            "recommended": named(self.recommended),
            "basis": "theory" if self.pilots is None else "pilots",
            "ranking": [rule.document() for rule in self.ranking],
            "reasons": list(self.reasons),
            "scenarios": [scenario.document() for scenario in scenarios],
            "iterations": 0 if self.pilots is None else self.pilots.iterations,
            "impossible": self.impossible,
        }


def advise(
    network: Any,
    poisoned: int | tuple[int, int] | None = None,
    *,
    partition: str | None = None,
    dataset: Any = "mnist",
    threat: str = "labels",
    rules: Iterable[str] = (),
    budget: float = BUDGET,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Recommend a rule for the agents of a network.

    Every rule is tried in short trainings on the network, with little data, in many scenarios:
    places of the poisoned agents, attacks, and partitions if none is given. The rule is
    recommended whose largest loss against the best rule of a scenario is least.

    Args:
        network: a :class:`Network`, or what a spec's ``network`` may be. Who is poisoned in it
            plays no part: the advice is for agents who do not know.
        poisoned: how many agents are poisoned; the least and the largest number; or ``None`` if
            that is not known.
        partition: how the samples are divided; by default anything from alike to very different.
        dataset: what is learned from.
        threat: ``"labels"``, or ``"messages"``.
        rules: names of rules, perhaps with options; by default all there are.
        budget: seconds it may take; 0 asks the theory alone.
        seed: every random choice follows from it.
        workers: how many threads.
        progress: is told how far it is.

    Raises:
        BezoarError: with the argument, what was found and what is allowed.
    """
    fields = {"network": network, "poisoned": (), "dataset": dataset, "seed": seed}
    asked = RunSpec.read(fields if partition is None else {**fields, "partition": partition})
    nobody = network_of(asked)
    numbers = _numbers(poisoned, nobody)
    attacks = choose("threat", threat, ATTACKS)
    if budget < 0:
        raise BezoarError(f"budget: expected seconds from 0, found {budget:g}")
    possible, impossible = candidates(nobody, numbers, rules)
    if not possible:
        raise BezoarError(f"rules: none is possible here; {next(iter(impossible.values()))}")
    if budget == 0:
        best, told = reasons_of_theory(nobody, numbers, possible)
        return Advice(nobody, numbers, best, (), told, impossible, None)
    partitions = PARTITIONS if partition is None else (partition,)
    clock = _Clock(budget, progress)
    data = pilot_data(dataset_of(asked), nobody.agents, seed)
    found = PilotResults.none_yet(possible)
    tried = rounds(nobody, numbers, partitions, attacks, seed)
    iterations, few = _length(next(tried), possible, data, clock, workers)
    tried = rounds(nobody, numbers, partitions, attacks, seed, few)
    for number, groups in zip(range(MOST_ROUNDS), tried, strict=False):
        kept, began = found.hopeful(), time.monotonic()
        for group in groups:
            text = f"round {number + 1}: {len(kept)} rules, {group[0].partition}"
            accuracy, measured = train_pilots(
                kept, group, data, iterations, clock.end, workers, clock.tick(text)
            )
            # A pilot that was cut short counts only where there is nothing better.
            if measured == iterations or (measured and not found.scenarios):
                found = found.and_these(kept, group, accuracy, measured)
        if clock.left < time.monotonic() - began:
            break
    if not found.scenarios:
        raise BezoarError(f"budget: {budget:g} seconds are too short for one pilot; give more")
    ranking = found.ranking()
    told = reasons(nobody, numbers, found, ranking)
    return Advice(nobody, numbers, ranking[0].aggregator, ranking, told, impossible, found)


def _numbers(poisoned: int | tuple[int, int] | None, network: Network) -> tuple[int, ...]:
    """How many agents may be poisoned, ascending: the ends of the range, and its middle."""
    most = network.agents - 1
    if poisoned is None:
        shares = (round(share * network.agents) for share in UNKNOWN)
        found = (1, *shares)
    elif isinstance(poisoned, tuple):
        found = (poisoned[0], sum(poisoned) // 2, poisoned[1])
    else:
        found = (poisoned,)
    if not all(1 <= number <= most for number in found) or sorted(found) != list(found):
        told = "-".join(map(str, poisoned)) if isinstance(poisoned, tuple) else poisoned
        raise BezoarError(
            f"poisoned: expected a number from 1 to {most}, or a range of them; found {told}"
        )
    return tuple(sorted(set(found)))


class _Clock:
    """How much of the time is used."""

    def __init__(self, budget: float, progress: Progress | None) -> None:
        self._began, self._budget, self._progress = time.monotonic(), budget, progress
        self.end = self._began + budget

    @property
    def left(self) -> float:
        return self.end - time.monotonic()

    def tick(self, text: str) -> Callable[[int], None]:
        """What tells of progress in a piece of work."""

        def tell(_: int) -> None:
            if self._progress is not None:
                self._progress(time.monotonic() - self._began, self._budget, text)

        return tell


def _length(
    groups: Sequence[Sequence[Scenario]],
    rules: Mapping[str, Choice],
    dataset: Dataset,
    clock: _Clock,
    workers: int | None,
) -> tuple[int, bool]:
    """How long pilots can be in two rounds, and whether scenarios must be few; found by timing."""
    tell, ticks = clock.tick("timing"), []

    def tick(iteration: int) -> None:
        tell(iteration)
        ticks.append(time.monotonic())

    train_pilots(rules, groups[0], dataset, TIMED, clock.end, workers, tick, times=1)
    if len(ticks) < TIMED:
        return SHORTEST, True
    iteration = (ticks[-2] - ticks[0]) / (TIMED - 2)
    measuring = max(0.0, ticks[-1] - ticks[-2] - iteration)
    for few, share in ((False, 1.0), (True, 1 / len(groups[0]))):
        pilot = clock.left / (2 * len(groups) * share)
        length = int((pilot - (TIMES + 1) * measuring) / iteration)
        if length >= SHORTEST:
            return min(length, LONGEST), few
    return SHORTEST, True
