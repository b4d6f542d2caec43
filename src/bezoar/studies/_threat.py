"""Between poisoned labels and lies in messages: which rules for which threat?"""

from collections.abc import Sequence
from itertools import product

from bezoar.studies._study import MEAN, Case, Results, Study, label

RULES = (MEAN, "trimmed_mean", "ios", "clipped_gossip:threshold=adaptive")

PANELS = {"iid": "i.i.d.", "by_class": "by class"}

SHARES = (0.0, 0.1, 0.3, 1.0)


def _cases() -> list[Case]:
    return [
        Case(
            title,
            f"{share:g}",
            rule,
            {"partition": partition, "attack": f"label_flip+dissensus:share={share}"},
        )
        for (partition, title), share, rule in product(PANELS.items(), SHARES, RULES)
    ]


def _answer(results: Results) -> Sequence[str]:
    sentences = []
    for panel in results.panels:
        told = "; ".join(
            f"t = {place}: {results.told(panel, place, results.best(panel, place))}"
            for place in results.places(panel)
        )
        first, *_, last = results.places(panel)
        falls = "; ".join(
            f"{label(rule)} {results.mean(panel, first, rule):.3f} → "
            f"{results.mean(panel, last, rule):.3f}"
            for rule in results.rules
        )
        sentences.append(
            f"{panel}, the best rule at each share of lies: {told}. From labels alone to "
            f"dissensus: {falls}."
        )
    return sentences


THREAT = Study(
    "threat",
    "Between wrong labels and wrong messages",
    "Poisoned agents flip their labels and send (1 − t) times the message that follows, plus t "
    "times that of dissensus: which rules hold up as the threat goes from labels to messages? Two "
    "of ten agents of two castles are poisoned.",
    "share t of dissensus",
    _cases,
    _answer,
    {"network": "two_castle:poisoned=2"},
)
