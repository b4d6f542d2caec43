"""Which rule should the agents of a network use? Asked of a study of others, or of pilots."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from bezoar._errors import BezoarError
from bezoar._options import choose, plain_number
from bezoar.advice._candidates import candidates, named
from bezoar.advice._pilot_results import PilotResults, RankedRule
from bezoar.advice._pilots import pilot_data
from bezoar.advice._reasons import reasons, reasons_of_study, reasons_of_theory
from bezoar.advice._rounds import Effort, Progress, Question, within_effort, within_time
from bezoar.advice._scenarios import ATTACKS, PARTITIONS
from bezoar.advice._study import Study, shipped_study
from bezoar.data import Dataset
from bezoar.experiments import Choice, RunSpec, dataset_of, network_of, partition_of
from bezoar.networks import Network

#: Seconds that pilots may take if nothing is said.
BUDGET = 300.0

#: The dataset of the study.
STUDIED = Choice("dataset", "mnist")

#: The shares of poisoned agents that are tried where their number is not known.
UNKNOWN = (0.1, 0.2)


@dataclass(frozen=True, eq=False)
class Advice:
    """A recommended rule, and why.

    Attributes:
        network: the network that was asked about.
        poisoned: how many agents were assumed to be poisoned.
        recommended: the rule, with its options.
        ranking: all rules, the best first: by pilots, or by the cases of the study; empty if only
            the theory was asked.
        reasons: sentences that can be checked against the pilots, the study and the theory.
        impossible: for each rule that cannot be applied at some agent, why.
        pilots: what was tried, and what came out; ``None`` if nothing was.
    """

    network: Network
    poisoned: tuple[int, ...]
    recommended: Choice
    ranking: Sequence[RankedRule]
    reasons: Sequence[str]
    impossible: dict[str, str]
    pilots: PilotResults | None

    @property
    def basis(self) -> str:
        """What the answer rests on: ``"pilots"``, ``"study"`` or ``"theory"``."""
        if self.pilots is not None:
            return "pilots"
        return "study" if self.ranking else "theory"

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        scenarios = [] if self.pilots is None else self.pilots.scenarios
        return {
            "recommended": named(self.recommended),
            "basis": self.basis,
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
    budget: float | None = None,
    effort: tuple[int, int] | None = None,
    study: Study | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Recommend a rule for the agents of a network.

    If labels are poisoned and the data are the packaged MNIST, the answer comes at once from a
    study of other networks: the rule with minimax regret. That is the rule whose largest loss
    against the best rule of a case, among cases with a partition of that kind, is the least. Rules
    within 0.02 of the least are tied, and the least mean loss decides.

    For other questions, or with a budget or an effort, every rule is tried in short trainings on
    the network, with little data, in many scenarios: places of the poisoned agents, attacks, and
    partitions if none is given. The rule with minimax regret in these scenarios is recommended;
    among tied rules, the least mean loss in the scenarios and in the study decides.

    Args:
        network: a :class:`Network`, or what a spec's ``network`` may be. Who is poisoned in it
            plays no part: the advice is for agents who do not know.
        poisoned: how many agents are poisoned; the least and the largest number; or ``None`` if
            that is not known.
        partition: how the samples are divided; by default anything from alike to very different.
        dataset: what is learned from.
        threat: ``"labels"``, or ``"messages"``.
        rules: names of rules, perhaps with options, or one name; by default all there are. If the
            study does not know one of them, it does not answer.
        budget: seconds that pilots may take; 0 asks the theory alone. By default the study answers
            if it can, and pilots take five minutes if it cannot.
        effort: in place of a budget: how many scenarios to try, and for how many iterations each.
            The answer to the same question is then always the same, however busy the machine is.
        study: how rules did on other networks; by default, if labels are poisoned, the study that
            comes with the package (docs/results/advisor.md).
        seed: every random choice follows from it.
        workers: how many threads.
        progress: is told how far it is.

    Raises:
        BezoarError: with the argument, what was found and what is allowed.
    """
    began = time.monotonic()
    fields = {"network": network, "poisoned": (), "dataset": dataset, "seed": seed}
    asked = RunSpec.read(fields if partition is None else {**fields, "partition": partition})
    nobody = network_of(asked)
    numbers = _numbers(poisoned, nobody)
    attacks = choose("threat", threat, ATTACKS)
    _check(budget, effort)
    rules = (rules,) if isinstance(rules, str) else tuple(rules)
    possible, impossible = candidates(nobody, numbers, rules)
    if not possible:
        raise BezoarError(f"rules: none is possible here; {next(iter(impossible.values()))}")
    if budget == 0 and effort is None:
        best, told = reasons_of_theory(nobody, numbers, possible)
        return Advice(nobody, numbers, best, (), told, impossible, None)
    if study is None:
        study = shipped_study() if threat == "labels" else Study({})
    if budget is None and effort is None and threat == "labels" and asked.dataset == STUDIED:
        found_there = _by_study(nobody, numbers, partition, dataset_of(asked), rules, study, seed)
        if found_there is not None:
            return found_there
    data = pilot_data(dataset_of(asked), nobody.agents, seed)
    partitions, left_out = _partitions(partition, data, nobody.agents, seed)
    kinds = [study.kind(one, data, nobody.agents, seed) for one in partitions]
    known = {str(rule.aggregator): rule.regret_mean for rule in study.ranking(kinds, possible)}
    question = Question(nobody, numbers, partitions, attacks, possible, known, data, seed)
    if effort is None:
        seconds = BUDGET if budget is None else budget
        found = within_time(question, began, seconds, workers, progress)
    else:
        found = within_effort(question, Effort(*effort), workers, progress)
    ranking = found.ranking(known)
    told = [*reasons(nobody, numbers, found, ranking, known), *left_out]
    if len(found.rules) < len(possible):
        told.append(
            f"There was time only for the {len(found.rules)} rules that did best in the study. A "
            "larger budget tries all."
        )
    return Advice(nobody, numbers, ranking[0].aggregator, ranking, told, impossible, found)


def _by_study(
    network: Network,
    poisoned: tuple[int, ...],
    partition: str | None,
    dataset: Dataset,
    rules: Sequence[str],
    study: Study,
    seed: int,
) -> Advice | None:
    """What the study says, without pilots; ``None`` if it does not know all the rules asked for."""
    partitions, left_out = _partitions(partition, dataset, network.agents, seed)
    kinds = [*{study.kind(one, dataset, network.agents, seed): None for one in partitions}]
    possible, impossible = candidates(network, poisoned, rules or study.rules)
    ranking = study.ranking(kinds, possible)
    each = [candidates(network, poisoned, [text])[0] for text in rules]
    if not ranking or not all(study.ranking(kinds, one) for one in each if one):
        return None
    told = reasons_of_study(network, poisoned, ranking, study, partition, kinds)
    best = ranking[0].aggregator
    return Advice(network, poisoned, best, ranking, [*told, *left_out], impossible, None)


def _partitions(
    given: str | None, dataset: Dataset, agents: int, seed: int
) -> tuple[list[str], list[str]]:
    """The partitions to try, and why others are left out; one that was given must be possible."""
    possible, left_out = [], []
    for text in PARTITIONS if given is None else (given,):
        try:
            partition_of(RunSpec.read({"partition": text, "seed": seed}), agents, dataset)
            possible.append(text)
        except BezoarError as error:
            if given is not None:
                raise
            left_out.append(f"Left out: {error}.")
    if not possible:
        tried = ", ".join(PARTITIONS)
        raise BezoarError(f"partition: none of {tried} is possible here. {left_out[0]}")
    return possible, left_out


def _check(budget: float | None, effort: tuple[int, int] | None) -> None:
    if budget is not None and not (isinstance(budget, int | float) and 0 <= budget < inf):
        raise BezoarError(f"budget: expected seconds from 0, found {budget!r}")
    if effort is None:
        return
    if budget is not None:
        raise BezoarError("effort: it takes the place of a budget, found both; give one of them")
    numbers = _several(effort)
    if len(numbers) != 2 or not all(map(_is_count, numbers)):
        found = "x".join(map(repr, numbers))
        raise BezoarError(f"effort: expected scenarios and iterations, from 1x1; found {found}")


def _numbers(poisoned: int | tuple[int, int] | None, network: Network) -> tuple[int, ...]:
    """How many agents may be poisoned, ascending: the ends of the range, and its middle."""
    if poisoned is None:
        shares = (max(1, round(share * network.agents)) for share in UNKNOWN)
        return tuple(sorted({1, *shares}))
    most, ends = network.agents - 1, _several(poisoned)
    counts = len(ends) in (1, 2) and all(map(_is_count, ends))
    if not counts or not ends[0] <= ends[-1] <= most:
        found = "-".join(map(repr, ends))
        raise BezoarError(
            f"poisoned: expected a number from 1 to {most}, or a range of them; found {found}"
        )
    return tuple(sorted({ends[0], (ends[0] + ends[-1]) // 2, ends[-1]}))


def _several(given: Any) -> tuple[Any, ...]:
    """The numbers of a tuple or list, or one number, as Python's."""
    return tuple(map(plain_number, given if isinstance(given, tuple | list) else (given,)))


def _is_count(found: Any) -> bool:
    return type(found) is int and found >= 1
