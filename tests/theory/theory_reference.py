"""The definitions written out with dense matrices, and networks to try them on."""

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from bezoar import Network


def dense_virtual(network: Network, kind: str, mixing: str = "metropolis") -> np.ndarray:
    """M, agent by agent, as the paper words it."""
    regular = network.regular
    place = {agent: index for index, agent in enumerate(regular)}
    E = network.mixing(mixing).toarray()
    M = np.zeros((len(regular), len(regular)))
    for w in regular:
        heard = [v for v in network.closed_neighbourhood(w) if v in place]
        for v in heard:
            M[place[w], place[v]] = 1 / len(heard) if kind == "uniform" else E[w, v]
        if kind == "mixing":
            M[place[w], place[w]] += sum(E[w, v] for v in network.poisoned)
    return M


def limit_perron(M: np.ndarray) -> np.ndarray:
    """The limit of (1/R) 1ᵀ M^k, by squaring; leading dimensions are matrices."""
    for _ in range(16):
        M = M @ M
    return M.mean(axis=-2)


def dense_lambda(network: Network, kind: str, mixing: str = "metropolis") -> float:
    M = dense_virtual(network, kind, mixing)
    return np.abs(M - limit_perron(M)).sum(axis=1).max()


def dense_beta(network: Network, kind: str, mixing: str = "metropolis") -> float:
    p = limit_perron(dense_virtual(network, kind, mixing))
    return np.abs(p - 1 / len(p)).sum()


@st.composite
def some_networks(draw, largest: int = 9) -> Network:
    """Connected networks with any agents but all poisoned."""
    agents = draw(st.integers(2, largest))
    graph = nx.empty_graph(agents)
    for agent in range(1, agents):
        graph.add_edge(agent, draw(st.integers(0, agent - 1)))
    pairs = [(w, v) for w in range(agents) for v in range(w)]
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), max_size=len(pairs))))
    poisoned = draw(st.sets(st.integers(0, agents - 1), max_size=agents - 1))
    return Network(graph, poisoned)
