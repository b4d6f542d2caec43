"""A network of agents: who is linked to whom, and who is poisoned."""

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse

from bezoar._arrays import Bools, Ints
from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar.networks._mixing import MIXINGS


class Network:
    """A connected, undirected graph of agents ``0 … W-1``, some of them poisoned.

    Args:
        graph: a connected networkx graph with the nodes ``0 … W-1`` and no self-loops. Every
            agent hears itself anyway: closed neighbourhoods contain the agent.
        poisoned: the agents whose labels are corrupted; at least one agent must remain regular.
        name: what the network is called in tables and legends; it also picks the drawing.

    A network does not change after it is made: it keeps no reference to ``graph``. It is a value:
    networks with equal graphs and equal poisoned agents are equal, whatever they are called.
    """

    def __init__(
        self, graph: nx.Graph, poisoned: Iterable[int] = (), *, name: str = "custom"
    ) -> None:
        self.adjacency, self.name = _adjacency(graph), name
        self.poisoned = _check_poisoned(poisoned, self.agents)

    def with_poisoned(self, poisoned: Iterable[int]) -> "Network":
        """The same graph with other agents poisoned."""
        other = object.__new__(Network)
        other.adjacency, other.name = self.adjacency, self.name
        other.poisoned = _check_poisoned(poisoned, self.agents)
        return other

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

    def at(self, iteration: int) -> "Network":
        """The network of one iteration: this one. See :class:`NetworkOverTime` for others."""
        return self

    @property
    def turns(self) -> "tuple[Network, ...]":
        """The networks that are used in turn: this one."""
        return (self,)

    def identity(self, iterations: int) -> str:
        """What identifies the network in a training of so many iterations."""
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
        """The network as a networkx graph; nodes carry the attribute ``poisoned``."""
        graph = nx.Graph()
        marks = enumerate(self.poisoned_mask.tolist())
        graph.add_nodes_from((agent, {"poisoned": poisoned}) for agent, poisoned in marks)
        graph.add_edges_from(self.edges)
        return nx.freeze(graph)

    @cached_property
    def regular_is_connected(self) -> bool:
        """Whether the regular agents are connected among themselves."""
        regular = np.asarray(self.regular)
        return _components(self.adjacency[regular][:, regular]) == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        poisoned = str(list(self.poisoned))
        if len(self.poisoned) > 8:
            poisoned = f"[{str(self.poisoned[:6])[1:-1]}, … {len(self.poisoned)} in all]"
        numbers = f"agents={self.agents}, edges={self.adjacency.nnz // 2}"
        return f"Network(name={self.name!r}, {numbers}, poisoned={poisoned})"


def _components(adjacency: sparse.csr_array) -> int:
    return int(sparse.csgraph.connected_components(adjacency, directed=False)[0])


def _adjacency(graph: nx.Graph) -> sparse.csr_array:
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise BezoarError(
            f"graph: expected an undirected networkx Graph, found {type(graph).__name__}"
        )
    agents = graph.number_of_nodes()
    if agents == 0:
        raise BezoarError("graph: it has no agents; at least one is needed")
    for label in graph:
        if not _is_integer(label) or not 0 <= label < agents:
            raise BezoarError(
                f"graph: agents must be labelled 0 … {agents - 1}, found {label!r}; "
                "networkx.convert_node_labels_to_integers renames them"
            )
    for agent in nx.nodes_with_selfloops(graph):
        raise BezoarError(
            f"graph: agent {agent} is linked to itself; leave self-loops out, "
            "every agent hears itself anyway"
        )
    adjacency = nx.to_scipy_sparse_array(graph, range(agents), dtype=np.int64, weight=None)
    adjacency.sort_indices()
    if (pieces := _components(adjacency)) > 1:
        raise BezoarError(
            f"graph: it falls into {pieces} unconnected pieces; every agent must reach every other"
        )
    return adjacency


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_poisoned(poisoned: Iterable[int], agents: int) -> tuple[int, ...]:
    if not isinstance(poisoned, Iterable):
        raise BezoarError(
            f"poisoned: expected a collection of agents such as {{3}}, found {poisoned!r}"
        )
    found = list(poisoned)
    for agent in found:
        if not _is_integer(agent):
            raise BezoarError(f"poisoned: agents are integers, found {agent!r}")
        if not 0 <= agent < agents:
            raise BezoarError(
                f"poisoned: agent {agent} is not in the network; allowed: 0 … {agents - 1}"
            )
    unique = tuple(sorted({int(agent) for agent in found}))
    if len(unique) == agents:
        raise BezoarError(f"poisoned: all {agents} agents are poisoned; one must remain regular")
    return unique
