"""The networks and cases of the advisor's study."""

import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise

import networkx as nx
import numpy as np

from bezoar import Network, networks
from bezoar.advice import Scenario, candidates
from bezoar.advice._study import SHARE
from bezoar.experiments import Choice

PARTITIONS = ("iid", "dirichlet:alpha=0.3", "by_class")

#: Attacks, the last of which the advisor never tries.
ATTACKS = ("label_flip", "dynamic_label_flip", "random_labels", "targeted")

#: Where poisoned agents sit, in turn from case to case.
PLACES = ("random", "betweenness")

#: The paper's rules, the plain mean, the median, Krum and no communication.
BASIC = (
    *("weighted_mean", "centered_clipping", "centered_clipping:threshold=0.3"),
    *("clipped_gossip", "clipped_gossip:threshold=0.3", "rfa", "lfighter"),
    *("mean", "median", "local"),
)

#: Rules of that kind that need an estimate of poisoned inputs.
ESTIMATING = ("trimmed_mean", "faba", "ios", "krum")

#: Rules of the field beside them. They assume one poisoned input: the rules above do worse if
#: they assume more.
FIELD = (
    *("nearest:estimate=up_to_1", "clipped_gossip:threshold=adaptive,estimate=up_to_1"),
    *("clipped_sum:estimate=up_to_1", "trimmed_sum:estimate=up_to_1"),
    *("krum:estimate=up_to_1,keep=most", "caf:estimate=up_to_1"),
    *("divide_and_conquer:estimate=up_to_1", "nnm+trimmed_mean:estimate=up_to_1", "balance"),
)


def _geometric(seed: int, agents: int) -> nx.Graph:
    radius = 1.5 * np.sqrt(np.log(agents) / (np.pi * agents))
    graph = nx.random_geometric_graph(agents, radius, seed=seed)
    return _connected(graph)


def _connected(graph: nx.Graph) -> nx.Graph:
    """The graph with a link from each part to the next."""
    graph = nx.convert_node_labels_to_integers(graph)
    parts = [min(part) for part in nx.connected_components(graph)]
    graph.add_edges_from(pairwise(parts))
    return graph


def _tree(seed: int, agents: int) -> nx.Graph:
    """A random tree with a few links more."""
    graph = nx.random_labeled_tree(agents, seed=seed)
    rng = np.random.default_rng(seed)
    graph.add_edges_from(rng.choice(agents, (agents // 5, 2), replace=True).tolist())
    graph.remove_edges_from(nx.selfloop_edges(graph))
    return graph


#: Sizes of the networks of a family.
SIZES = (10, 12, 16, 20, 24, 30, 40, 60)

FAMILIES: dict[str, Callable[[int, int], nx.Graph]] = {
    "erdos_renyi": lambda seed, n: _connected(nx.gnp_random_graph(n, 5 / n, seed=seed)),
    "small_world": lambda seed, n: nx.connected_watts_strogatz_graph(n, 4, 0.2, seed=seed),
    "scale_free": lambda seed, n: nx.barabasi_albert_graph(n, 2, seed=seed),
    "geometric": _geometric,
    "tree": _tree,
    "communities": lambda seed, n: _connected(
        nx.planted_partition_graph(4, n // 4 + 1, min(1.0, 12 / n), 0.4 / n, seed=seed)
    ),
    "torus": lambda seed, n: nx.grid_2d_graph(3 + seed % 3, max(3, n // 4), periodic=True),
}


def all_networks() -> Iterator[tuple[str, str, Network]]:
    """Family, name and network, with nobody poisoned."""
    for name in ("two_castle", "line", "fan"):
        for agents in (10, 20):
            made = networks.create(name, agents=agents)
            yield "paper", f"{name}-{agents}", made.with_poisoned(())
    for family, draw in FAMILIES.items():
        for seed, agents in enumerate(SIZES):
            graph = nx.convert_node_labels_to_integers(draw(seed, agents))
            yield family, f"{family}-{agents}", Network(graph)
    yield (
        "large",
        "small_world-200",
        Network(nx.connected_watts_strogatz_graph(200, 6, 0.1, seed=9)),
    )
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, 20, periodic=True))
    yield "large", "torus-200", Network(grid)


def poisoned_of(network: Network) -> int:
    """How many agents are poisoned."""
    return max(1, round(SHARE * network.agents))


def cases(name: str, network: Network) -> Iterator[Scenario]:
    """For each partition, a scenario that the advisor does not know; drawn from the name."""
    many, drawn = poisoned_of(network), zlib.crc32(name.encode())
    for number, partition in enumerate(PARTITIONS):
        rng = np.random.default_rng([drawn, number])
        placement = PLACES[(drawn + number) % len(PLACES)]
        placed = networks.place(network, many, placement, int(rng.integers(10_000, 1 << 30)))
        attack = str(rng.choice(ATTACKS))
        yield Scenario(placed, placement, partition, attack, int(rng.integers(10_000, 1 << 30)))


def rules_of(network: Network) -> dict[str, Choice]:
    """The rules that are trained in full on a network, by how they are typed."""
    many = poisoned_of(network)
    assumed = (
        f"{rule}:estimate=up_to_{n}" for rule in ESTIMATING for n in dict.fromkeys((1, many))
    )
    found, _ = candidates(network, [many], (*BASIC, *assumed, *FIELD))
    return found
