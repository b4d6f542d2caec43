"""What does a wrong estimate of poisoned inputs cost?"""

from collections.abc import Sequence
from itertools import product

from bezoar.studies._study import MEAN, Case, Results, Study, label

RULES = ("trimmed_mean", "ios", "krum", "nearest", "nnm+trimmed_mean")

#: On a complete network everyone hears both poisoned agents.
POISONED = 2

PANELS = {"iid": "i.i.d.", "by_class": "by class"}

ESTIMATES = (0, 1, 2, 3, 4)


def _cases() -> list[Case]:
    found = []
    for (partition, title), estimate in product(PANELS.items(), ESTIMATES):
        fields = {"partition": partition}
        found.append(Case(title, str(estimate), MEAN, fields))
        for rule in RULES:
            given = {"name": rule, "estimate": estimate}
            found.append(Case(title, str(estimate), rule, {**fields, "aggregator": given}))
    return found


def _answer(results: Results) -> Sequence[str]:
    sentences = []
    low, true, high = (str(number) for number in (ESTIMATES[0], POISONED, ESTIMATES[-1]))
    for panel in results.panels:
        told = "; ".join(
            f"{label(rule)} {results.mean(panel, low, rule):.3f}, "
            f"{results.mean(panel, true, rule):.3f}, {results.mean(panel, high, rule):.3f}"
            for rule in RULES
        )
        ends = {
            rule: [results.mean(panel, str(number), rule) for number in ESTIMATES] for rule in RULES
        }
        true_place = ESTIMATES.index(POISONED)
        best = [rule for rule in RULES if ends[rule][true_place] == max(ends[rule])]
        sentences.append(
            f"{panel}, with the estimates {low}, {true} (the truth) and {high}: {told}; the "
            f"weighted mean {results.mean(panel, true, MEAN):.3f}. The true number is the best "
            f"estimate for {len(best)} of {len(RULES)} rules."
        )
    return sentences


ESTIMATE = Study(
    "estimate",
    "A wrong estimate of poisoned inputs",
    "On a complete network of ten agents, two of which flip their labels, all agents take the same "
    "number of their inputs for poisoned: what does a wrong number cost?",
    "estimate of poisoned inputs",
    _cases,
    _answer,
    {"network": f"complete:poisoned={POISONED}"},
)
