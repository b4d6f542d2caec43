"""A network of agents: who is linked to whom, and who is poisoned."""

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bezoar._errors import BezoarError
from bezoar.networks._mixing import mixing_matrix

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
        self._build(_adjacency(graph), poisoned, name)

    def _build(self, adjacency: sparse.csr_array, poisoned: Iterable[int], name: str) -> None:
        self.adjacency = adjacency
        self.name = name
        self.poisoned = _check_poisoned(poisoned, adjacency.shape[0])

    def with_poisoned(self, poisoned: Iterable[int]) -> "Network":
        """The same graph with other agents poisoned."""
        other = object.__new__(Network)
        other._build(self.adjacency, poisoned, self.name)
        return other

    @property
    def agents(self) -> int:
        """The number of agents, ``W``."""
        return int(self.adjacency.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of who is linked to whom and who is poisoned."""
        parts = (self.adjacency.indptr, self.adjacency.indices, self.poisoned)
        digest = hashlib.sha256()
        for part in parts:
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
        """What tells it from other networks in a training of so many iterations."""
        return self.fingerprint

    @cached_property
    def regular(self) -> tuple[int, ...]:
        """The regular agents, ascending."""
        return tuple(int(agent) for agent in np.flatnonzero(~self.poisoned_mask))

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
        return tuple(int(v) for v in self.adjacency.indices[start:stop])

    def closed_neighbourhood(self, agent: int) -> tuple[int, ...]:
        """``agent`` and its neighbours, ascending."""
        return tuple(sorted((agent, *self.neighbours(agent))))

    def mixing(self, kind: str = "metropolis") -> sparse.csr_array:
        """The doubly stochastic mixing matrix ``E [W, W]``, ``metropolis`` or ``equal``."""
        return mixing_matrix(self.adjacency, kind)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Every edge once, as ``(lower, higher)``, ascending."""
        upper = sparse.triu(self.adjacency, format="coo")
        return tuple(sorted(zip(upper.row.tolist(), upper.col.tolist(), strict=True)))

    @cached_property
    def graph(self) -> nx.Graph:
        """The network as a networkx graph; nodes carry the attribute ``poisoned``."""
        graph = nx.Graph()
        for agent, poisoned in enumerate(self.poisoned_mask):
            graph.add_node(agent, poisoned=bool(poisoned))
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
        return (
            f"Network(name={self.name!r}, agents={self.agents}, "
            f"edges={self.adjacency.nnz // 2}, poisoned={_abridged(self.poisoned)})"
        )


def _abridged(agents: tuple[int, ...]) -> str:
    if len(agents) <= 8:
        return str(list(agents))
    return f"[{', '.join(map(str, agents[:6]))}, … {len(agents)} in all]"


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
    labels = set(graph)
    strangers = [label for label in labels if not _is_integer(label) or not 0 <= label < agents]
    if strangers:
        raise BezoarError(
            f"graph: agents must be labelled 0 … {agents - 1}, found {strangers[0]!r}; "
            "networkx.convert_node_labels_to_integers renames them"
        )
    loops = list(nx.nodes_with_selfloops(graph))
    if loops:
        raise BezoarError(
            f"graph: agent {loops[0]} is linked to itself; leave self-loops out, "
            "every agent hears itself anyway"
        )
    ends = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    adjacency = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(agents, agents)
    )
    adjacency.sort_indices()
    pieces = _components(adjacency)
    if pieces > 1:
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
