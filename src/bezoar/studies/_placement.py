"""What does it matter where poisoned agents sit, at the same number of them?"""

from collections.abc import Sequence
from itertools import product

from bezoar import networks, theory
from bezoar.studies._study import MEAN, Case, Results, Study, label

RULES = (MEAN, "ios", "nearest", "clipped_gossip:threshold=adaptive")

#: Three of twenty agents are poisoned, wherever they sit.
AGENTS, POISONED = 20, 3
PROBABILITY = 0.2

PANELS = {"iid": "i.i.d.", "dirichlet:alpha=0.1": "Dirichlet 0.1"}

PLACES = ("degree", "betweenness", "worst", "cut")


def _place(placement: str) -> str:
    """A placement, and the largest contamination rate that it gives."""
    network = networks.create("erdos_renyi", agents=AGENTS, probability=PROBABILITY)
    rates = theory.contamination(networks.place(network, POISONED, placement))
    return f"{placement}\n{rates.delta_max:.2f}"


def _cases() -> list[Case]:
    places = {placement: _place(placement) for placement in PLACES}
    return [
        Case(title, place, rule, {"partition": partition, "placement": placement})
        for (partition, title), (placement, place), rule in product(
            PANELS.items(), places.items(), RULES
        )
    ]


def _answer(results: Results) -> Sequence[str]:
    sentences = []
    for panel in results.panels:
        places = results.places(panel)
        told = []
        for rule in results.rules:
            ends = {place: results.mean(panel, place, rule) for place in places}
            low, high = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
            told.append(
                f"{label(rule)} {ends[low]:.3f} ({low.split()[0]}) to {ends[high]:.3f} "
                f"({high.split()[0]})"
            )
        wins = sum(results.best(panel, place) == MEAN for place in places)
        sentences.append(
            f"{panel}, from the worst to the best placement: {'; '.join(told)}. The weighted mean "
            f"is on top in {wins} of {len(places)} placements."
        )
    return sentences


PLACEMENT = Study(
    "placement",
    "Where poisoned agents sit",
    f"{POISONED} of {AGENTS} agents of one Erdős–Rényi network (probability {PROBABILITY}) flip "
    "their labels, so δ is the same throughout: what does it matter where they sit?",
    "placement, and its δ_max",
    _cases,
    _answer,
    {
        "network": f"erdos_renyi:agents={AGENTS},probability={PROBABILITY}",
        "poisoned": POISONED,
    },
)
