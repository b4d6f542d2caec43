"""Does momentum help rules that filter, and with which batches?"""

from collections.abc import Sequence
from itertools import product

from bezoar.studies._study import MEAN, Case, Results, Study, label

RULES = (MEAN, "trimmed_mean", "ios", "clipped_gossip:threshold=adaptive")

PANELS = {4: "batches of 4", 32: "batches of 32", None: "all samples"}

BETAS = (0.0, 0.9, 0.99)


def _cases() -> list[Case]:
    return [
        Case(title, f"{beta:g}", rule, {"batch": batch, "optimizer": f"momentum:beta={beta}"})
        for (batch, title), beta, rule in product(PANELS.items(), BETAS, RULES)
    ]


def _answer(results: Results) -> Sequence[str]:
    sentences = []
    for panel in results.panels:
        without, *others = results.places(panel)
        told = []
        for rule in results.rules:
            ends = {beta: results.mean(panel, beta, rule) for beta in others}
            best = max(ends, key=ends.__getitem__)
            change = ends[best] - results.mean(panel, without, rule)
            told.append(f"{label(rule)} {change:+.3f} (β = {best})")
        sentences.append(
            f"{panel.capitalize()}, what the best momentum adds to none: {'; '.join(told)}."
        )
    return sentences


MOMENTUM = Study(
    "momentum",
    "Momentum, batches and rules",
    "Momentum averages the noise of batches away, which rules that filter take for poison: what "
    "does it add, for which batches? Two of ten agents of two castles flip their labels; samples "
    "are divided by Dirichlet 1. With m = βm + (1−β)g the step is as long for every β.",
    "β",
    _cases,
    _answer,
    {"network": "two_castle:poisoned=2", "partition": "dirichlet:alpha=1.0"},
)
