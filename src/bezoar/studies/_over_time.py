"""Does mixing over time take the conditions on a network away?"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product

import networkx as nx

from bezoar import networks
from bezoar._seeds import Purpose, generator
from bezoar.networks import Network, NetworkOverTime
from bezoar.studies._study import MEAN, Case, Results, Study

RULES = (MEAN, "ios", "nearest", "clipped_gossip:threshold=adaptive")

PANELS = {"line": "Line", "fan": "Fan"}

#: After how many iterations agents change places.
PLACES = {"never": 0, "10": 10, "1": 1}


def shuffled_agents(network: Network, every: int, seed: int) -> NetworkOverTime:
    """The same graph throughout, in which all agents change places at random again and again.

    They do so after ``every`` iterations; in the first ones the network is as given. The poisoned
    agents are always the same.
    """

    @cache
    def turn(number: int) -> Network:
        if number == 0:
            return network
        places = generator(seed, Purpose.PLACEMENT, iteration=number).permutation(network.agents)
        graph = nx.empty_graph(network.agents)
        graph.add_edges_from((int(places[a]), int(places[b])) for a, b in network.edges)
        return Network(graph, network.poisoned, name=network.name)

    return NetworkOverTime(lambda iteration: turn((iteration - 1) // every), name=network.name)


def _shuffled(name: str, every: int) -> Callable[[int], NetworkOverTime] | None:
    return partial(shuffled_agents, networks.create(name), every) if every else None


def _cases() -> list[Case]:
    return [
        Case(title, place, rule, {"network": network}, _shuffled(network, every))
        for (network, title), (place, every), rule in product(PANELS.items(), PLACES.items(), RULES)
    ]


def _answer(results: Results) -> Sequence[str]:
    sentences = []
    for panel in results.panels:
        first, *_, last = results.places(panel)
        told = "; ".join(
            f"{results.told(panel, first, rule)} → {results.mean(panel, last, rule):.3f}"
            for rule in results.rules
        )
        leads = {
            place: results.mean(panel, place, MEAN)
            - results.mean(panel, place, results.best(panel, place, RULES[1:]))
            for place in (first, last)
        }
        sentences.append(
            f"{panel}, from fixed places to new ones in every iteration: {told}. The weighted "
            f"mean's lead over the best of the others goes from {leads[first]:+.3f} to "
            f"{leads[last]:+.3f}."
        )
    return sentences


OVER_TIME = Study(
    "over_time",
    "Networks that change over time",
    "The graph, and so the mean degree, stays the same, but all agents change places at random "
    "after some iterations: does mixing over time take the conditions away, that the regular "
    "network is connected (it is not on the line) and that δ_max is not far above δ (it is on the "
    "fan)? By class; one of ten agents flips its labels.",
    "iterations between changes",
    _cases,
    _answer,
    {"partition": "by_class"},
)
