"""Ways to choose a rule: the advisor, and simpler ones to compare it with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.advisor_cases import all_networks, poisoned_of
from benchmarks.advisor_results import Accuracies, Key
from bezoar import Network, theory
from bezoar.advice import PilotResults, RankedRule, Study
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
    """The ranking by pilots and a study of other families."""
    found = _pilot_results(asked)
    known = for_all(_known(asked), found.rules)
    return [str(rule.aggregator) for rule in found.ranking(known, counts)]


def by_root_mean_square(asked: Asked) -> list[str]:
    """The ranking by pilots alone."""
    return [str(rule.aggregator) for rule in _pilot_results(asked).ranking()]


def by_minimax(asked: Asked) -> list[str]:
    """The ranking by what a rule lost at most in the pilots; ties go by what it lost on average."""
    return _minimax(_pilot_results(asked).ranking(), {})


def by_minimax_with_study(asked: Asked) -> list[str]:
    """The same, by what a rule lost at most in the pilots and in other families."""
    outcomes = _study(asked).outcomes[asked.key.partition]
    known = {text: did.regret_worst for text, did in outcomes.items()}
    ranking = _pilot_results(asked).ranking()
    return _minimax(ranking, for_all(known, [str(rule.aggregator) for rule in ranking]))


def _minimax(ranking: Sequence[RankedRule], known: Mapping[str, float]) -> list[str]:
    """Rules by the largest loss, in pilots or known; within ``GOOD`` of the least by the mean."""
    kept = [rule for rule in ranking if rule.scenarios == ranking[0].scenarios]
    mean = {str(rule.aggregator): rule.regret_mean for rule in kept}
    most = {
        str(rule.aggregator): max(rule.regret_worst, known.get(str(rule.aggregator), 0.0))
        for rule in kept
    }
    tied = {text for text, lost in most.items() if lost <= min(most.values()) + GOOD}
    others = sorted(most.keys() - tied, key=lambda text: most[text])
    return [*sorted(tied, key=lambda text: mean[text]), *others]


def _pilot_results(asked: Asked) -> PilotResults:
    assert asked.pilots is not None
    rules = {text: read_choice("aggregator", text) for text in asked.pilots}
    accuracy = np.array(list(asked.pilots.values()))
    return PilotResults(rules, (), accuracy, 0)  # a ranking goes by accuracies alone


def study_alone(asked: Asked) -> str:
    """The rule with the least root mean square loss in other families, for the same partition."""
    return _least(_known(asked), asked)


def _known(asked: Asked) -> dict[str, float]:
    return _study(asked).known([asked.key.partition])


def _study(asked: Asked) -> Study:
    return Study.of((key.partition, found) for key, found in asked.alike.items())


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


#: What the advisor is called, if it has a budget and if it has none.
ADVISOR, ALONE = "the advisor with pilots", "the advisor by default: the study alone"

#: Other ways to rank rules by the same pilots.
BY_PILOTS: dict[str, Callable[[Asked], list[str]]] = {
    "its pilots by minimax regret": by_minimax,
    "its pilots and the study by minimax regret": by_minimax_with_study,
    "its pilots by the root mean square": by_root_mean_square,
}

#: Ways to choose without pilots, by what they are called.
WAYS: dict[str, Callable[[Asked], str]] = {
    ALONE: study_alone,
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
            by_counts[key] = {n: best - _first(advisor(asked, n), found) for n in COUNTS}
            for way, rank in BY_PILOTS.items():
                lost[key][way] = best - _first(rank(asked), found)
    for key, here in by_counts.items():
        others_lost = [one for other, one in by_counts.items() if other.family != key.family]
        lost[key] |= {ADVISOR: here[best_counts(others_lost)]}
    return lost


def _first(ranking: Iterable[str], found: Accuracies) -> float:
    """The accuracy of the first rule that was trained in the case."""
    return next(found[rule] for rule in ranking if rule in found)


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
