"""Where a number of poisoned agents sit."""

from collections.abc import Callable

import networkx as nx
import numpy as np

from bezoar._arrays import Ints
from bezoar._checks import whole
from bezoar._options import choose
from bezoar._seeds import Purpose, generator
from bezoar.networks._cut import cut_placement
from bezoar.networks._network import Network, any_network

#: Nodes and links looked at for betweenness: a few seconds. Beyond that, some agents stand for all.
_EFFORT = 4_000_000


def place(network: Network, poisoned: int, placement: str = "last", seed: int = 0) -> Network:
    """A network with this number of poisoned agents, placed as asked.

    Who is poisoned in it already plays no part. Ties are broken by the lowest number.

    - ``last``: the last agents.
    - ``random``: anywhere, by the seed.
    - ``degree``: the agents with the most neighbours.
    - ``betweenness``: the agents on the most shortest paths; in large networks on those from some
      agents only.
    - ``worst``: where the largest contamination rate δ_max is the largest.
    - ``cut``: where the regular network falls apart most, or nearest to that; a note says if it
      does not.
    """
    network = any_network(network)
    count = whole("poisoned", poisoned, 0, network.agents - 1)
    whole("seed", seed, 0)
    found = choose("placement", placement, PLACEMENTS)(network, count, seed)
    agents, note = found if isinstance(found, tuple) else (found, "")
    return network.with_poisoned(agents, note)


def _betweenness(network: Network, count: int, seed: int) -> list[int]:
    agents = network.agents
    sources = max(1, _EFFORT // (agents + network.adjacency.nnz))
    found = nx.betweenness_centrality(
        network.graph, k=sources if sources < agents else None, seed=0
    )
    # Rounded, so that agents in the same position are a tie on every machine.
    return _highest(np.round([1e9 * found[agent] for agent in range(agents)]), count)


def worst_agent(network: Network, count: int) -> tuple[int, float]:
    """The agent whose inputs can be poisoned most by ``count`` agents, and that share of them."""
    rates = np.minimum(count, network.degrees) / (network.degrees + 1)
    agent = int(rates.argmax())
    return agent, float(rates[agent])


def _worst(network: Network, count: int, seed: int) -> list[int]:
    """The worst agent's neighbours first, then others, the lowest first."""
    agent, _ = worst_agent(network, count)
    near = network.neighbours(agent)
    others = np.setdiff1d(np.arange(network.agents), (agent, *near))
    return [*near, *others.tolist()][:count]


def _highest(values: Ints | np.ndarray, count: int) -> list[int]:
    found: list[int] = np.argsort(-values, kind="stable")[:count].tolist()
    return found


#: The ways to place poisoned agents: from a network, a number and a seed to agents, and a note.
PLACEMENTS: dict[str, Callable[[Network, int, int], list[int] | tuple[list[int], str]]] = {
    "last": lambda network, count, seed: list(range(network.agents - count, network.agents)),
    "random": lambda network, count, seed: (
        generator(seed, Purpose.PLACEMENT).permutation(network.agents)[:count].tolist()
    ),
    "degree": lambda network, count, seed: _highest(network.degrees, count),
    "betweenness": _betweenness,
    "worst": _worst,
    "cut": cut_placement,
}
