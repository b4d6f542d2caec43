"""Poisoned agents that cut the regular network.

Which agents cut it into the smallest pieces is a hard problem. Here the agents are ordered in
several ways; the border of every beginning of an order separates it from the rest, and of all these
borders the best is taken. If none is small enough, the smallest set of agents that cuts the network
is looked for exactly, in networks that are not too large.
"""

from collections.abc import Iterator
from math import comb

import networkx as nx
import numpy as np
from scipy import sparse

from bezoar._arrays import Bools, Ints
from bezoar._numbers import count as number_of
from bezoar.networks._network import Network

#: How many orders start from different agents, and how many agents with many neighbours are taken
#: out before.
_STARTS, _HUBS = 12, 16

#: Agents times links up to which the smallest cut is computed exactly.
_EXACT = 400_000


def cut_placement(network: Network, count: int, seed: int) -> tuple[list[int], str]:
    """The agents, and a note unless they cut the regular network."""
    if count == 0:
        return [], ""
    best, fewest = [], comb(network.agents - count, 2)
    for candidate in _candidates(network, count):
        filled = _filled(network, candidate, count)
        pairs = _connected_pairs(network, filled)
        if pairs < fewest:
            best, fewest = filled, pairs
    if best:
        return best, ""
    return _smallest_cut(network, count)


def _candidates(network: Network, count: int) -> Iterator[list[int]]:
    """Sets of at most ``count`` agents, each of which may cut the network."""
    hubs = np.argsort(-network.degrees, kind="stable")
    taken = np.unique(np.linspace(0, count - 1, min(count, _HUBS)).astype(int))
    for first in map(int, taken):
        out = hubs[:first].tolist()
        left = _largest_piece(network, out)
        if len(left) < 3:
            continue
        inner = network.adjacency[left][:, left]
        for order in _orders(inner):
            border = _best_border(inner, order, count - first)
            if border is not None:
                yield [*out, *left[border].tolist()]


def _orders(adjacency: sparse.csr_array) -> Iterator[Ints]:
    """Breadth-first orders, from agents with few neighbours and from those far away from others."""
    degrees = np.diff(adjacency.indptr)
    starts = np.argsort(degrees, kind="stable")[: _STARTS // 2].tolist()
    last = int(starts[0])
    for _ in range(_STARTS // 2):
        last = int(_breadth_first(adjacency, last)[-1])
        starts.append(last)
    for start in dict.fromkeys(starts):
        yield _breadth_first(adjacency, start)


def _breadth_first(adjacency: sparse.csr_array, start: int) -> Ints:
    found: Ints = sparse.csgraph.breadth_first_order(
        adjacency, start, directed=False, return_predecessors=False
    )
    return found


def _best_border(adjacency: sparse.csr_array, order: Ints, most: int) -> Ints | None:
    """The border of the beginning of an order that leaves the fewest connected pairs.

    An agent is at the border if it is in the beginning and has a neighbour outside of it.
    """
    agents = len(order)
    rank = np.empty(agents, dtype=np.int64)
    rank[order] = np.arange(agents)
    latest = np.maximum.reduceat(rank[adjacency.indices], adjacency.indptr[:-1])
    at_border = latest > rank
    changes = np.zeros(agents + 1, dtype=np.int64)
    np.add.at(changes, rank[at_border], 1)
    np.add.at(changes, latest[at_border], -1)
    border = np.cumsum(changes)[:agents]  # of the beginning that ends with each place
    inside = np.arange(1, agents + 1) - border
    outside = agents - np.arange(1, agents + 1)
    allowed = (border <= most) & (inside > 0) & (outside > 0)
    if not allowed.any():
        return None
    pairs = np.where(allowed, inside * (inside - 1) + outside * (outside - 1), agents**2)
    end = int(pairs.argmin())
    return np.flatnonzero((rank <= end) & (latest > end))


def _filled(network: Network, chosen: list[int], count: int) -> list[int]:
    """``count`` agents: the chosen ones, then those of the largest piece with many neighbours."""
    while len(chosen) < count:
        piece = _largest_piece(network, chosen)
        degrees = network.degrees[piece]
        more = piece[np.argsort(-degrees, kind="stable")][
            : max(1, min(count - len(chosen), len(piece) // 2))
        ]
        chosen = [*chosen, *more.tolist()]
    return chosen


def _largest_piece(network: Network, out: list[int]) -> Ints:
    """The agents of the largest connected piece without some agents, ascending."""
    kept, piece = _pieces(network, out)
    found: Ints = np.flatnonzero(kept)[piece == np.bincount(piece).argmax()]
    return found


def _pieces(network: Network, out: list[int]) -> tuple[Bools, Ints]:
    kept = np.ones(network.agents, dtype=np.bool_)
    kept[out] = False
    _, piece = sparse.csgraph.connected_components(network.adjacency[kept][:, kept], directed=False)
    return kept, piece


def _connected_pairs(network: Network, out: list[int]) -> int:
    """How many pairs of agents are still connected without some agents."""
    sizes = np.bincount(_pieces(network, out)[1])
    return int((sizes * (sizes - 1) // 2).sum())


def _smallest_cut(network: Network, count: int) -> tuple[list[int], str]:
    """The smallest set of agents that cuts the network, or a part of it."""
    agents = network.agents
    if network.adjacency.nnz == agents * (agents - 1):
        note = "every agent is linked to every other, so no poisoned agents can cut the network"
        return list(range(count)), note
    if agents * network.adjacency.nnz <= _EXACT:
        found = nx.minimum_node_cut(network.graph)
        smallest = sorted(found, key=lambda agent: (-network.degrees[agent], agent))
        if len(smallest) <= count:
            filled = _filled(network, smallest, count)
            if _connected_pairs(network, filled) < comb(agents - count, 2):
                return filled, ""
        few = number_of(count, "poisoned agent")
        why = f"{few} cannot cut the regular network; it takes {len(smallest)}"
    else:
        lowest = int(network.degrees.argmin())
        smallest = list(network.neighbours(lowest))
        why = f"no {count} agents were found that cut the regular network if they are poisoned"
    return _filled(network, smallest[:count], count), why
