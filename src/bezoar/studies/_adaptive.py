"""Do adaptive rules lose to the weighted mean where the paper's lower bound says so?"""

from collections.abc import Sequence
from itertools import product

from bezoar.studies._study import MEAN, Case, Results, Study, label, standings

#: Rules that return ``z`` if all regular inputs are ``z``, whatever the poisoned inputs are.
RULES = (
    "clipped_gossip:threshold=adaptive",
    "clipped_sum",
    "nearest",
    "nnm+nearest",
    "nnm+trimmed_mean",
)

#: Clipping at a fixed length, which the lower bound does not cover.
FIXED = "clipped_gossip"

PANELS = {"fan": "Fan", "line": "Line"}

PLACES = {"by_class": "by class", "dirichlet:alpha=1.0": "Dirichlet 1", "iid": "i.i.d."}


def _cases() -> list[Case]:
    return [
        Case(title, place, rule, {"network": network, "partition": partition})
        for (network, title), (partition, place), rule in product(
            PANELS.items(), PLACES.items(), (MEAN, FIXED, *RULES)
        )
    ]


def _answer(results: Results) -> Sequence[str]:
    place = PLACES["by_class"]
    sentences = [f"Adaptive rules: {standings(results, RULES)}."]
    for panel in results.panels:
        best = results.best(panel, place, RULES)
        behind = sum(results.is_ahead(panel, place, MEAN, rule) for rule in RULES)
        sentences.append(
            f"{panel}, by class: {behind} of {len(RULES)} adaptive rules end behind "
            f"{label(MEAN)}; {results.told(panel, place, MEAN)}, the best adaptive rule "
            f"{results.told(panel, place, best)}, fixed clipping "
            f"{results.mean(panel, place, FIXED):.3f}."
        )
    return sentences


ADAPTIVE = Study(
    "adaptive",
    "Adaptive rules against the weighted mean",
    "Adaptive rules return z where all regular inputs equal z, so the paper's lower bound covers "
    "them, unlike clipping at a fixed length: do they lose to the weighted mean on fan and line, "
    "by class? One of ten agents flips its labels; rules know how many inputs are poisoned.",
    "partition",
    _cases,
    _answer,
)
