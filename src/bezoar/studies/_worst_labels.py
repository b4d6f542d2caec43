"""Where does the weighted mean stop winning under the strongest label attack?"""

from collections.abc import Sequence
from itertools import product

from bezoar.studies._study import MEAN, Case, Results, Study, label

RULES = ("trimmed_mean", "ios")

PANELS = {
    "label_flip": "Label flip",
    "worst_labels:knows=own": "Worst labels, own",
    "worst_labels": "Worst labels, all known",
}

PLACES = {
    "iid": "i.i.d.",
    "dirichlet:alpha=0.1": "Dir. 0.1",
    "by_class": "by class",
}


def _cases() -> list[Case]:
    return [
        Case(title, place, rule, {"attack": attack, "partition": partition})
        for (attack, title), (partition, place), rule in product(
            PANELS.items(), PLACES.items(), (MEAN, *RULES)
        )
    ]


def _answer(results: Results) -> Sequence[str]:
    wins, loses, sentences = [], [], []
    for panel in results.panels:
        told = []
        for place in results.places(panel):
            best = results.best(panel, place, RULES)
            ratio = results.ratio(panel, place)
            if all(results.is_ahead(panel, place, MEAN, rule) for rule in RULES):
                wins.append(ratio)
            elif results.is_ahead(panel, place, best, MEAN):
                loses.append(ratio)
            lead = results.mean(panel, place, MEAN) - results.mean(panel, place, best)
            told.append(f"{place} {lead:+.3f} at A/ξ = {ratio:.2g}")
        sentences.append(f"{panel}, its lead over the best of the others: {'; '.join(told)}.")

    def spread(ratios: Sequence[float]) -> str:
        return f"between {min(ratios):.2g} and {max(ratios):.2g}" if ratios else "nowhere"

    first = (
        f"{label(MEAN)} is ahead of every other rule in {len(wins)} of "
        f"{sum(len(results.places(panel)) for panel in results.panels)} settings, with A/ξ "
        f"{spread(wins)}, and behind the best of them in {len(loses)}, with A/ξ {spread(loses)}."
    )
    return [first, *sentences]


WORST_LABELS = Study(
    "worst_labels",
    "The strongest labels, and where the weighted mean stops winning",
    "Under labels that oppose the regular agents' gradient most in every step, where does the "
    "weighted mean stop winning, in terms of A/ξ? Two of ten agents of two castles are poisoned.",
    "partition",
    _cases,
    _answer,
    {"network": "two_castle:poisoned=2"},
)
