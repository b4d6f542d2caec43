"""Why a rule is recommended, in sentences that a person can check."""

from collections.abc import Mapping, Sequence

import numpy as np

from bezoar import theory
from bezoar._arrays import Bools
from bezoar._numbers import count, listed
from bezoar.advice._pilot_results import PilotResults, RankedRule
from bezoar.advice._regret import SMALL
from bezoar.advice._study import AGENTS, SHARE, Study
from bezoar.experiments import Choice
from bezoar.networks import Network, place

#: Random placements looked at to see how often the regular agents' network falls apart.
PLACEMENTS = 30


def reasons(
    network: Network,
    poisoned: Sequence[int],
    found: PilotResults,
    ranking: Sequence[RankedRule],
    known: Mapping[str, float],
) -> list[str]:
    """What the pilots, the study and the theory say for the first rule of a ranking."""
    return [
        _loss(found, ranking[0]),
        *_study(ranking, known),
        *_pieces(network, poisoned, found, ranking),
        *_contamination(network, poisoned),
        *_by(found, ranking, "partition"),
        *_by(found, ranking, "attack"),
        *_doubt(found, ranking),
    ]


def reasons_of_theory(
    network: Network, poisoned: Sequence[int], rules: Mapping[str, Choice]
) -> tuple[Choice, list[str]]:
    """A rule that the theory alone recommends, and why."""
    plain = next((text for text in ("weighted_mean", "mean") if text in rules), None)
    told = [
        "This is from the theory alone. Nothing was tried: ask without a budget of 0 to be "
        "answered from what rules did in trainings.",
        *_bounds(network, poisoned),
        "If local data are alike, the theory does not prefer this rule; trainings can tell."
        if plain
        else "No mean is among the rules that were asked about, and the theory does not choose "
        "between the others: the first of them is named.",
    ]
    return rules[plain or next(iter(rules))], told


def reasons_of_study(
    network: Network,
    poisoned: Sequence[int],
    ranking: Sequence[RankedRule],
    study: Study,
    partition: str | None,
    kinds: Sequence[str],
) -> list[str]:
    """What the study and the theory say for the first rule of the study's ranking.

    Args:
        network, poisoned: what was asked about.
        ranking: the study's, for partitions of these kinds.
        study: how rules did on other networks.
        partition: the one that was asked about, if it is known.
        kinds: the study's partitions that count.
    """
    best, mean = ranking[0], "weighted_mean"
    told = [
        f"In the {best.scenarios} cases of the study (docs/results/advisor.md) with "
        f"{listed(kinds)}, {best.aggregator} lost {best.regret_mean:.3f} of the agents' accuracy "
        f"on average against the best rule of each, and at most {best.regret_worst:.3f}."
    ]
    if partition is None:
        rules = {str(rule.aggregator): rule.aggregator for rule in ranking}
        by_kind = (f"with {kind} {study.ranking([kind], rules)[0].aggregator}" for kind in kinds)
        told.append(
            "How local data differ is not known, so all these partitions count. Which rule is "
            f"first depends on that: {', '.join(by_kind)}."
        )
    elif partition not in kinds:
        told.append(
            f"The study has no {partition}; with {kinds[0]} the classes of agents differ most "
            "nearly as much."
        )
    if not AGENTS[0] <= network.agents <= AGENTS[1]:
        told.append(
            f"The study's networks have {AGENTS[0]} to {AGENTS[1]} agents, this one has "
            f"{network.agents:,}."
        )
    if poisoned[-1] > 2 * max(1, SHARE * network.agents):
        told.append(
            f"In the study {SHARE:.0%} of the agents are poisoned, here up to "
            f"{poisoned[-1] / network.agents:.0%}."
        )
    told += _bounds(network, poisoned)
    told += [
        f"In the study {mean} lost {rule.regret_mean:.3f} on average and at most "
        f"{rule.regret_worst:.3f}."
        for rule in ranking[1:]
        if str(rule.aggregator) == mean
    ]
    told.append(
        "Nothing was tried on this network; with --budget 5m (in Python budget=300) the rules are. "
        "In the study that was not right more often."
    )
    return told


def _bounds(network: Network, poisoned: Sequence[int]) -> list[str]:
    """What the theory says of the weighted mean and of robust rules on a network."""
    worse = _contamination(network, poisoned)
    told = list(worse)
    for apart in _falling_apart(network, poisoned[-1]):
        told.append(
            f"{apart} Then no robust rule has a guarantee (Theorem 1), and the weighted mean has "
            "one (Theorem 2)."
        )
    told.append(
        "So the weighted mean has the smaller bound if local data differ much."
        if worse
        else "The orders of the bounds are the same, and the weighted mean needs no condition."
    )
    return told


def _loss(found: PilotResults, best: RankedRule) -> str:
    told = (
        f"In {count(best.scenarios, 'scenario')} {best.aggregator} lost {best.regret_mean:.3f} of "
        "the agents' accuracy on average against the best rule of each, and at most "
        f"{best.regret_worst:.3f}"
    )
    if best.regret_worst < SMALL:
        return f"{told}."
    worst = int(np.nanargmax(found.of(found.regret, best.aggregator)))
    return f"{told}: with {found.scenarios[worst]}."


def _study(ranking: Sequence[RankedRule], known: Mapping[str, float]) -> list[str]:
    """What is known from other networks, and whether the pilots say the same."""
    tried = {str(rule.aggregator): rule for rule in ranking}
    best = next((text for text in known if text in tried), "")
    if not best:
        return []
    told = (
        f"On the networks of the study (docs/results/advisor.md), with data that differ about as "
        f"much, {best} comes first: it lost {known[best]:.3f} on average"
    )
    first = str(ranking[0].aggregator)
    if first == best:
        return [f"{told}. The pilots found nothing clearly better here."]
    there = f", {first} {known[first]:.3f}" if first in known else ""
    return [
        f"{told}{there}. Here {best} lost {tried[best].regret_mean:.3f} on average and at most "
        f"{tried[best].regret_worst:.3f}."
    ]


def _pieces(
    network: Network, poisoned: Sequence[int], found: PilotResults, ranking: Sequence[RankedRule]
) -> list[str]:
    """What becomes of the rules where poisoned agents cut the regular ones apart."""
    told = _falling_apart(network, poisoned[-1])
    seen = np.array([scenario.network.regular_pieces > 1 for scenario in found.scenarios])
    if seen.any() and (losers := _losers(found, ranking, seen)):
        told.append(
            f"In {count(int(seen.sum()), 'scenario')} in which the regular agents' network fell "
            f"apart, {losers}."
        )
    return told


def _contamination(network: Network, poisoned: Sequence[int]) -> list[str]:
    worst = theory.worst_contamination(network, poisoned[-1])
    delta = poisoned[-1] / network.agents
    if worst.value <= delta:
        return []
    return [
        f"With {count(poisoned[-1], 'poisoned agent')} at the worst places "
        f"({listed(network.named(worst.poisoned), 5)}) an agent has "
        f"{worst.value:.0%} poisoned inputs, while {delta:.0%} of all agents are poisoned. If "
        "local data differ much, the error of robust rules follows the first number, that of the "
        "weighted mean the second (Table II)."
    ]


def _by(found: PilotResults, ranking: Sequence[RankedRule], field: str) -> list[str]:
    """How the rules compare for each partition, or attack, if that makes a difference."""
    values = [getattr(scenario, field) for scenario in found.scenarios]
    told = []
    for value in dict.fromkeys(values):
        chosen = np.array([one == value for one in values])
        if chosen.all():
            return []
        if losers := _losers(found, ranking, chosen):
            told.append(f"With {value}, {losers}.")
    return told


def _losers(found: PilotResults, ranking: Sequence[RankedRule], chosen: Bools) -> str:
    """Which rules lost most in some scenarios, and what the recommended rule lost there.

    Of a rule with several options, the one that lost least counts.
    """
    regret = np.where(chosen & np.isfinite(found.regret), found.regret, -1).max(axis=1)
    best, lost = ranking[0].aggregator, dict[str, float]()
    for choice, worst in zip(found.rules.values(), regret.tolist(), strict=True):
        if worst >= 0 and choice.name not in (best.name, "local"):
            lost[choice.name] = min(worst, lost.get(choice.name, worst))
    least = float(found.of(regret, best))
    most = sorted(lost, key=lambda name: -lost[name])[:3]
    if not most or lost[most[-1]] < least + SMALL:
        return ""
    told = ", ".join(f"{name} {lost[name]:.2f}" for name in most)
    return f"the largest losses were {told}; {best} lost at most {least:.2f}"


def _doubt(found: PilotResults, ranking: Sequence[RankedRule]) -> list[str]:
    """Rules that the pilots cannot tell from the first."""
    first = found.of(found.accuracy, ranking[0].aggregator)
    close = []
    for rule in ranking[1:]:
        apart = np.abs(first - found.of(found.accuracy, rule.aggregator))
        if rule.scenarios == ranking[0].scenarios and np.nanmax(apart) < SMALL:
            close.append(str(rule.aggregator))
    if not close:
        return []
    return [f"Within {SMALL:g} of it in every scenario, so as good a choice: {', '.join(close)}."]


def _falling_apart(network: Network, many: int) -> list[str]:
    """How many random placements cut the regular agents apart, and into how many pieces at most."""
    placed = (place(network, many, "random", seed) for seed in range(PLACEMENTS))
    pieces = [each.regular_pieces for each in placed]
    apart = sum(number > 1 for number in pieces)
    if not apart:
        return []
    return [
        f"For {apart} of {PLACEMENTS} random placements of {count(many, 'poisoned agent')} the "
        f"regular agents' network falls apart, into up to {max(pieces)} pieces."
    ]
