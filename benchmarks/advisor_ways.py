"""Ways to choose a rule: the advisor, and simpler ones to compare it with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.advisor_cases import all_networks, poisoned_of
from benchmarks.advisor_results import Accuracies, Key
from bezoar import Network, theory
from bezoar.advice import PilotResults, Study
from bezoar.advice._pilot_results import STUDY_COUNTS
from bezoar.advice._study import for_all
from bezoar.experiments import read_choice

#: A choice that loses no more than this is a good one.
GOOD = 0.02

#: As many scenarios as the study may count for the advisor.
COUNTS = (3, 6, 12, 24)

#: What rules did in the pilots of a case, scenario after scenario.
Pilots = Mapping[str, Sequence[float]]


@dataclass(frozen=True, eq=False)
class Asked:
    """What a way to choose is told.

    Attributes:
        key: the case, of which ways look at the network and the partition alone.
        possible: the rules that were trained in the case.
        others: the cases of other families.
        pilots: what the advisor's pilots found.
    """

    key: Key
    possible: frozenset[str]
    others: Mapping[Key, Accuracies]
    pilots: Pilots | None

    @property
    def alike(self) -> dict[Key, Accuracies]:
        """The other families' cases with the same partition."""
        return {k: found for k, found in self.others.items() if k.partition == self.key.partition}


def advisor(asked: Asked, counts: int) -> list[str]:
    """The advisor's ranking; what it knows is a study of other families."""
    assert asked.pilots is not None
    rules = {text: read_choice("aggregator", text) for text in asked.pilots}
    accuracy = np.array(list(asked.pilots.values()))
    found = PilotResults(rules, (), accuracy, 0)  # a ranking goes by accuracies alone
    known = for_all(_known(asked), rules)
    return [str(rule.aggregator) for rule in found.ranking(known, counts)]


def study_alone(asked: Asked) -> str:
    """The rule with the least root mean square loss in other families, for the same partition."""
    return _least(_known(asked), asked)


def _known(asked: Asked) -> dict[str, float]:
    study = Study.of((key.partition, found) for key, found in asked.alike.items())
    return study.known([asked.key.partition])


def best_of_others(asked: Asked) -> str:
    """The rule with the least mean loss in other families."""
    return _least(_mean_losses(asked.others.values()), asked)


def best_of_partition(asked: Asked) -> str:
    """The rule with the least mean loss in other families, for the same partition."""
    return _least(_mean_losses(asked.alike.values()), asked)


def stump(asked: Asked) -> str:
    """The best rule of other families among networks on the same side of the median δ_max − δ."""
    middle = float(np.median([gap(key.network) for key in asked.others]))
    above = gap(asked.key.network) > middle
    side = [one for key, one in asked.others.items() if (gap(key.network) > middle) == above]
    return _least(_mean_losses(side), asked)


def by_theory(asked: Asked) -> str:
    """The weighted mean, unless the worst places contaminate no agent more than the average."""
    robust = [rule for rule in sorted(asked.possible) if rule.startswith("ios")]
    return robust[0] if gap(asked.key.network) <= 0 and robust else "weighted_mean"


def _always(rule: str) -> Callable[[Asked], str]:
    return lambda _: rule


#: What the advisor is called.
ADVISOR = "the advisor"

#: Other ways to choose, by what they are called.
WAYS: dict[str, Callable[[Asked], str]] = {
    "the study alone, without pilots": study_alone,
    "always the weighted mean": _always("weighted_mean"),
    "always the plain mean": _always("mean"),
    "no communication": _always("local"),
    "the best rule of other families": best_of_others,
    "the best rule of other families, same partition": best_of_partition,
    "a stump on δ_max − δ": stump,
    "the theory's bounds": by_theory,
}

#: Not a way to choose: what one loses on average by choosing at random.
RANDOM = "a random rule"


def losses(
    cases: Mapping[Key, Accuracies], pilots: Mapping[tuple[str, str], Pilots]
) -> dict[Key, dict[str, float]]:
    """What each way lost in each case; the advisor, where it was asked.

    How much the study counts for the advisor is chosen by the cases of other families, too.
    """
    lost: dict[Key, dict[str, float]] = {}
    by_counts: dict[Key, dict[int, float]] = {}
    for key, found in cases.items():
        others = {other: one for other, one in cases.items() if other.family != key.family}
        asked = Asked(key, frozenset(found), others, pilots.get((key.network, key.partition)))
        best = max(found.values())
        lost[key] = {way: best - found[choose(asked)] for way, choose in WAYS.items()}
        lost[key][RANDOM] = best - float(np.mean(list(found.values())))
        if asked.pilots is not None:
            chosen = {n: next(rule for rule in advisor(asked, n) if rule in found) for n in COUNTS}
            by_counts[key] = {n: best - found[rule] for n, rule in chosen.items()}
    for key, here in by_counts.items():
        others_lost = [one for other, one in by_counts.items() if other.family != key.family]
        lost[key] |= {ADVISOR: here[best_counts(others_lost)]}
    return lost


def untrained(
    cases: Mapping[Key, Accuracies], pilots: Mapping[tuple[str, str], Pilots]
) -> dict[Key, str]:
    """The cases in which the rule that the advisor recommends was not trained, and the rule."""
    found = {}
    for key, trained in cases.items():
        if (here := pilots.get((key.network, key.partition))) is not None:
            others = {other: one for other, one in cases.items() if other.family != key.family}
            first = advisor(Asked(key, frozenset(trained), others, here), STUDY_COUNTS)[0]
            if first not in trained:
                found[key] = first
    return found


def best_counts(lost: Sequence[Mapping[int, float]]) -> int:
    """How much the study is to count for the least root mean square loss in some cases."""
    return min(COUNTS, key=lambda n: sum(one[n] ** 2 for one in lost))


def _mean_losses(cases: Iterable[Accuracies]) -> dict[str, float]:
    """What rules lost on average, of those that were trained in half of the cases."""
    found: dict[str, list[float]] = {}
    many = [*cases]
    for case in many:
        for rule, accuracy in case.items():
            found.setdefault(rule, []).append(max(case.values()) - accuracy)
    return {
        rule: float(np.mean(some)) for rule, some in found.items() if len(some) >= len(many) / 2
    }


def _least(lost: Mapping[str, float], asked: Asked) -> str:
    """The rule that lost least, of those that were trained in the case."""
    return min((rule for rule in lost if rule in asked.possible), key=lambda rule: lost[rule])


@cache
def gap(name: str) -> float:
    """δ_max − δ of a network at the worst places."""
    network = _networks()[name]
    many = poisoned_of(network)
    return theory.worst_contamination(network, many).value - many / network.agents


@cache
def _networks() -> dict[str, Network]:
    return {name: network for _, name, network in all_networks()}
