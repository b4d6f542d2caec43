"""A network of agents: who is linked to whom, and who is poisoned."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from scipy import sparse

from bezoar._arrays import Bools, Floats, Ints
from bezoar._checks import instance
from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar.networks._graphs import agent_names, coordinates, links, marked, numbers_of, parts_told
from bezoar.networks._mixing import MIXINGS


class Network:
    """A connected, undirected graph of agents ``0 … W-1``, some of them poisoned.

    Args:
        graph: a connected networkx graph. Nodes ``0 … W-1`` have these numbers; other nodes are
            numbered in the graph's order and keep their names. Every agent hears itself without
            a self-loop. Coordinates (``pos``, ``x`` and ``y``, ``lon`` and ``lat``)
            are where agents are drawn.
        poisoned: the nodes whose labels are corrupted; at least one agent must remain regular. By
            default those with a true attribute ``poisoned``.
        name: what the network is called in tables and legends; it also picks the drawing.
        symmetric: whether to take graphs that have one-way links, repeated links, self-loops or
            weights, without them. ``note`` then says so; by default they are refused.
        note: what a reader of results must know about the network.

    Attributes:
        adjacency: ``[W, W]`` one where two agents are linked.
        names: ``[W]`` what each agent is called; by default its number.
        poisoned: the numbers of the poisoned agents, ascending.
        positions: ``[W, 2]`` where agents are, or ``None``.
        changes: whether each iteration has a network of its own; see :class:`NetworkOverTime`.

    A network does not change after it is made: it keeps no reference to ``graph``. It is a value:
    networks with equal graphs and equal poisoned agents are equal, whatever they, their agents and
    their places are called.
    """

    positions: Floats | None
    changes: ClassVar[bool] = False

    def __init__(
        self,
        graph: nx.Graph,
        poisoned: Iterable[Any] | None = None,
        *,
        name: str = "custom",
        symmetric: bool = False,
        note: str = "",
    ) -> None:
        names = agent_names(graph)
        ends, left_out = links(graph, names, symmetric)
        self.name, self.note = name, "; ".join(filter(None, (note, left_out)))
        self.names = tuple(names.values())
        self.positions = coordinates(graph, names)
        self.adjacency = _adjacency(ends, self.names)
        given = marked(graph) if poisoned is None else poisoned
        self.poisoned = self._numbers(given, list(names))

    def with_poisoned(self, poisoned: Iterable[int | str], note: str = "") -> "Network":
        """The same graph with other agents poisoned, given by their numbers or names.

        The ``note`` is added to the network's own.
        """
        other = object.__new__(Network)
        other.adjacency, other.name, other.names = self.adjacency, self.name, self.names
        other.positions, other.note = self.positions, "; ".join(filter(None, (self.note, note)))
        other.poisoned = other._numbers(poisoned)
        return other

    def _numbers(self, given: Iterable[Any], nodes: Iterable[Any] = ()) -> tuple[int, ...]:
        """Agents by their numbers, each once, ascending; some must remain."""
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise BezoarError(
                f"poisoned: expected a collection of agents such as {{3}}, found {given!r}"
            )
        unique = tuple(sorted(set(numbers_of(given, self.names, nodes))))
        if len(unique) == self.agents:
            raise BezoarError(
                f"poisoned: all {self.agents} agents are poisoned; one must remain regular"
            )
        return unique

    def named(self, agents: Iterable[int]) -> list[str]:
        """The names of some agents."""
        return [self.names[agent] for agent in agents]

    @property
    def agents(self) -> int:
        """The number of agents, ``W``."""
        return int(self.adjacency.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of who is linked to whom and who is poisoned."""
        digest = hashlib.sha256()
        for part in (self.adjacency.indptr, self.adjacency.indices, self.poisoned):
            content = np.asarray(part, dtype="<i8")
            digest.update(len(content).to_bytes(8, "little") + content.tobytes())
        return digest.hexdigest()

    @property
    def whole(self) -> "Network":
        """The network with all of its links, those included that are silent just now."""
        return self

    def at(self, iteration: int) -> "Network":
        """The network of one iteration: this one. See :class:`NetworkOverTime` for others."""
        return self

    @property
    def turns(self) -> "tuple[Network, ...]":
        """The networks that are used in turn: this one."""
        return (self,)

    def identity(self, iterations: int) -> str:
        """What identifies the network in a training of this many iterations."""
        return self.fingerprint

    @cached_property
    def regular(self) -> tuple[int, ...]:
        """The regular agents, ascending."""
        return tuple(np.flatnonzero(~self.poisoned_mask).tolist())

    @cached_property
    def poisoned_mask(self) -> Bools:
        """``[W]``: true where the agent is poisoned."""
        mask = np.zeros(self.agents, dtype=np.bool_)
        mask[list(self.poisoned)] = True
        return mask

    @cached_property
    def degrees(self) -> Ints:
        """``[W]``: the number of neighbours ``N_w``, the agent itself not counted."""
        return np.asarray(np.diff(self.adjacency.indptr), dtype=np.int64)

    @cached_property
    def poisoned_inputs(self) -> Ints:
        """``[W]``: the number ``P_w`` of poisoned agents in each closed neighbourhood."""
        mask = self.poisoned_mask.astype(np.int64)
        counts: Ints = self.adjacency @ mask + mask
        return counts

    def neighbours(self, agent: int) -> tuple[int, ...]:
        """The neighbours of ``agent``, ascending, without itself."""
        if not 0 <= agent < self.agents:
            raise BezoarError(
                f"agent: {agent} is not in the network; allowed: 0 … {self.agents - 1}"
            )
        start, stop = self.adjacency.indptr[agent : agent + 2]
        return tuple(self.adjacency.indices[start:stop].tolist())

    def closed_neighbourhood(self, agent: int) -> tuple[int, ...]:
        """``agent`` and its neighbours, ascending."""
        return tuple(sorted((agent, *self.neighbours(agent))))

    def mixing(self, kind: str = "metropolis") -> sparse.csr_array:
        """The doubly stochastic mixing matrix ``E [W, W]``, ``metropolis`` or ``equal``."""
        return choose("mixing", kind, MIXINGS)(self.adjacency)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Every edge once, as ``(lower, higher)``, ascending."""
        ends = zip(*(each.tolist() for each in self.adjacency.nonzero()), strict=True)
        return tuple((one, other) for one, other in ends if one < other)

    @cached_property
    def graph(self) -> nx.Graph:
        """The network as a networkx graph of numbers; nodes carry the attribute ``poisoned``."""
        graph = nx.Graph()
        marks = enumerate(self.poisoned_mask.tolist())
        graph.add_nodes_from((agent, {"poisoned": poisoned}) for agent, poisoned in marks)
        graph.add_edges_from(self.edges)
        return nx.freeze(graph)

    @cached_property
    def regular_pieces(self) -> int:
        """Into how many pieces the network of the regular agents falls."""
        regular = np.asarray(self.regular)
        return _components(self.adjacency[regular][:, regular])[0]

    @property
    def regular_is_connected(self) -> bool:
        """Whether the regular agents are connected among themselves."""
        return self.regular_pieces == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        who = self.named(self.poisoned)
        poisoned = f"[{', '.join(who[: 8 if len(who) <= 8 else 6])}]"
        if len(who) > 8:
            poisoned = f"{poisoned[:-1]}, … {len(who)} in all]"
        numbers = f"agents={self.agents}, edges={self.adjacency.nnz // 2}"
        return f"Network(name={self.name!r}, {numbers}, poisoned={poisoned})"


def as_network(found: Any) -> Any:
    """A networkx graph as a network; anything else as it is."""
    return Network(found) if isinstance(found, nx.Graph) else found


def any_network(found: Any) -> Network:
    """A network, or a networkx graph as one; anything else is refused."""
    kinds = "a Network or a networkx graph"
    network: Network = instance("network", as_network(found), Network, kinds)
    return network


def check_network(found: Any) -> Network:
    """A network that does not change, or a networkx graph as one; anything else is refused."""
    network = any_network(found)
    if network.changes:
        raise BezoarError(
            f"network: expected one that does not change, found {network.name}; what holds for one "
            "network need not hold for networks in turn: ask about each of network.turns"
        )
    return network


def _components(adjacency: sparse.csr_array) -> tuple[int, Ints]:
    """How many pieces a graph falls into, and the piece of each agent."""
    pieces, piece = sparse.csgraph.connected_components(adjacency, directed=False)
    return int(pieces), piece


def _adjacency(ends: Ints, names: Sequence[str]) -> sparse.csr_array:
    agents, both = len(names), np.concatenate([ends, ends[::-1]], axis=1)
    ones = np.ones(both.shape[1], dtype=np.int64)
    adjacency = sparse.csr_array((ones, (both[0], both[1])), (agents, agents))
    adjacency.sort_indices()
    pieces, piece = _components(adjacency)
    if pieces > 1:
        raise BezoarError(
            f"graph: it falls into {pieces} unconnected pieces: {parts_told(piece, names)}. "
            "Every agent must reach every other: link them, or leave some out"
        )
    return adjacency
