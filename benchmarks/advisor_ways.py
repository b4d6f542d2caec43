"""Ways to choose a rule: the advisor, and simpler ones to compare it with."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from benchmarks.advisor_cases import all_networks, poisoned_of
from benchmarks.advisor_results import Accuracies, Key
from bezoar import Network, theory
from bezoar.advice import PilotResults, RankedRule, Study
from bezoar.advice._regret import Regret, by_regret
from bezoar.advice._rounds import GO_ON
from bezoar.experiments import read_choice

#: A choice that loses no more than this is a good one.
GOOD = 0.02

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


def advisor(asked: Asked) -> list[str]:
    """The ranking by pilots, with a study of other families for ties."""
    return _typed(_pilot_results(asked).ranking(_known(asked)))


def by_minimax(asked: Asked) -> list[str]:
    """The ranking by pilots alone."""
    return _typed(_pilot_results(asked).ranking())


def by_minimax_of_both(asked: Asked) -> list[str]:
    """By what a rule lost at most in the pilots or in other families; ties go by the pilots."""
    elsewhere = {str(rule.aggregator): rule.regret_worst for rule in _study(asked)}
    typical = float(np.median(list(elsewhere.values())))
    ranking = _pilot_results(asked).ranking()
    regrets = {
        text: Regret(max(rule.regret_worst, elsewhere.get(text, typical)), rule.regret_mean)
        for text, rule in zip(_typed(ranking), ranking, strict=True)
        if rule.scenarios == ranking[0].scenarios
    }
    return by_regret(regrets)


def by_root_mean_square(asked: Asked) -> list[str]:
    """By the root mean square of what a rule lost in the pilots."""
    found = _pilot_results(asked)
    lost = {text: _risk(row) for text, row in zip(found.rules, found.regret, strict=True)}
    return sorted((text for text in lost if np.isfinite(lost[text])), key=lambda text: lost[text])


def going_on(asked: Asked) -> tuple[set[str], set[str]]:
    """The rules that were tried on after the first scenario, and those that now would be."""
    found = _pilot_results(asked)
    first = replace(found, accuracy=found.accuracy[:, :1])
    rows = zip(found.rules, found.accuracy, strict=True)
    kept = {text for text, accuracy in rows if np.isfinite(accuracy).all()}
    return kept, set(_typed(first.ranking(_known(asked)))[:GO_ON])


def _typed(ranking: Sequence[RankedRule]) -> list[str]:
    return [str(rule.aggregator) for rule in ranking]


def _pilot_results(asked: Asked) -> PilotResults:
    assert asked.pilots is not None
    rules = {text: read_choice("aggregator", text) for text in asked.pilots}
    accuracy = np.array(list(asked.pilots.values()))
    return PilotResults(rules, (), accuracy, 0)  # a ranking goes by accuracies alone


def study_alone(asked: Asked) -> str:
    """The rule with minimax regret in other families, for the same partition."""
    return next(text for text in _known(asked) if text in asked.possible)


def study_by_root_mean_square(asked: Asked) -> str:
    """The rule with the least root mean square loss in other families, for the same partition."""
    return _least(_losses(asked.alike.values(), _risk), asked)


def _study(asked: Asked) -> list[RankedRule]:
    """The rules of other families' cases with the same partition, by minimax regret."""
    study = Study.of((key.partition, found) for key, found in asked.alike.items())
    rules = {text: read_choice("aggregator", text) for text in study.rules}
    return study.ranking([asked.key.partition], rules)


def _known(asked: Asked) -> dict[str, float]:
    """What the advisor knows of the mean regrets in other families, the best rule first."""
    return {str(rule.aggregator): rule.regret_mean for rule in _study(asked)}


def best_of_others(asked: Asked) -> str:
    """The rule with the least mean loss in other families."""
    return _least(_losses(asked.others.values(), np.mean), asked)


def best_of_partition(asked: Asked) -> str:
    """The rule with the least mean loss in other families, for the same partition."""
    return _least(_losses(asked.alike.values(), np.mean), asked)


def stump(asked: Asked) -> str:
    """The best rule of other families among networks on the same side of the median δ_max − δ."""
    middle = float(np.median([gap(key.network) for key in asked.others]))
    above = gap(asked.key.network) > middle
    side = [one for key, one in asked.others.items() if (gap(key.network) > middle) == above]
    return _least(_losses(side, np.mean), asked)


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
    "its pilots without the study": by_minimax,
    "the largest regret of its pilots and the study": by_minimax_of_both,
    "the root mean square of its pilots": by_root_mean_square,
}

#: Ways to choose without pilots, by what they are called.
WAYS: dict[str, Callable[[Asked], str]] = {
    ALONE: study_alone,
    "the study alone by the root mean square": study_by_root_mean_square,
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
    """What each way lost in each case; the advisor, where it was asked."""
    lost: dict[Key, dict[str, float]] = {}
    for asked in all_asked(cases, pilots):
        key, found = asked.key, cases[asked.key]
        best = max(found.values())
        lost[key] = {way: best - found[choose(asked)] for way, choose in WAYS.items()}
        lost[key][RANDOM] = best - float(np.mean(list(found.values())))
        if asked.pilots is not None:
            for way, rank in {ADVISOR: advisor, **BY_PILOTS}.items():
                lost[key][way] = best - _first(rank(asked), found)
    return lost


def all_asked(
    cases: Mapping[Key, Accuracies], pilots: Mapping[tuple[str, str], Pilots]
) -> Iterator[Asked]:
    """What ways to choose are told in every case."""
    for key, found in cases.items():
        others = {other: one for other, one in cases.items() if other.family != key.family}
        yield Asked(key, frozenset(found), others, pilots.get((key.network, key.partition)))


def _first(ranking: Iterable[str], found: Accuracies) -> float:
    """The accuracy of the first rule that was trained in the case."""
    return next(found[rule] for rule in ranking if rule in found)


def untrained(
    cases: Mapping[Key, Accuracies], pilots: Mapping[tuple[str, str], Pilots]
) -> dict[Key, str]:
    """The cases in which the rule that the advisor recommends was not trained, and the rule."""
    return {
        asked.key: first
        for asked in all_asked(cases, pilots)
        if asked.pilots is not None and (first := advisor(asked)[0]) not in asked.possible
    }


def _losses(
    cases: Iterable[Accuracies], summed_up: Callable[[Any], float | np.floating[Any]]
) -> dict[str, float]:
    """What rules lost, summed up, of those that were trained in half of the cases."""
    found: dict[str, list[float]] = {}
    many = [*cases]
    for case in many:
        for rule, accuracy in case.items():
            found.setdefault(rule, []).append(max(case.values()) - accuracy)
    return {
        rule: float(summed_up(some)) for rule, some in found.items() if len(some) >= len(many) / 2
    }


def _risk(lost: Any) -> float:
    """The root mean square."""
    return float(np.sqrt(np.square(lost).mean()))


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
