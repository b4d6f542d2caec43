"""Topologies by name. Agents are numbered from 0.

``poisoned`` names the poisoned agents, or is their number ``n``. Then they are the last ``n``,
unless a docstring says which they are.
"""

from collections.abc import Callable, Collection, Sequence, Set
from typing import Any

import networkx as nx
import numpy as np

from bezoar._checks import positive, whole
from bezoar._errors import BezoarError
from bezoar._options import plain_number
from bezoar.networks._network import Network

Poisoned = int | Sequence[int | str] | Set[int | str]

#: The largest networks that are made or read: more would take gigabytes and many minutes.
MOST_AGENTS, MOST_LINKS = 1_000_000, 2_000_000

#: How often a random topology is drawn again in the hope of a connected one.
DRAWS = 100


def two_castle(agents: int = 10, poisoned: Poisoned = 1) -> Network:
    """Two cliques of ``k = agents / 2``, all cross pairs linked but ``(i, i + k)``.

    Agents ``0 … k-1`` are the first castle. ``poisoned = n`` means the ``n`` agents around the
    border between the castles: ``k-1``, then ``k``, ``k-2``, ``k+1``, …, so that some regular
    agent hears all of them.
    """
    if whole("agents", agents, 4) % 2:
        raise BezoarError(f"agents: two castles need an even number, found {agents}")
    half = agents // 2
    check_size(agents, agents * (agents - 2) // 2)
    graph = nx.complete_graph(agents)
    graph.remove_edges_from((i, i + half) for i in range(half))
    return _network("two_castle", graph, poisoned, middle=half - 1)


def line(agents: int = 10, poisoned: Poisoned = 1) -> Network:
    """A path ``0 - 1 - … - W-1``.

    ``poisoned = n`` means the ``n`` agents in the middle, ``(W-1)//2`` first. They cut the regular
    network in two.
    """
    check_size(whole("agents", agents, 2), agents - 1)
    return _network("line", nx.path_graph(agents), poisoned, middle=(agents - 1) // 2)


def fan(agents: int = 10, poisoned: Poisoned = 1) -> Network:
    """A path of the regular agents; each poisoned one is linked to all of them.

    The regular agents are ``0 … R-1`` in the order of the path, the poisoned ones the last, not
    linked to each other. If ``poisoned`` names agents, there are as many hubs (at least one), and
    the named agents are poisoned instead of the hubs.
    """
    whole("agents", agents, 3)
    poisoned = plain_number(poisoned)
    number = poisoned if isinstance(poisoned, int) else len(set(map(str, _names(poisoned))))
    hubs = max(1, number)
    if hubs >= agents - 1:
        raise BezoarError(
            f"poisoned: a fan of {agents} agents has at most {agents - 2} poisoned, found {hubs}"
        )
    regular = agents - hubs
    check_size(agents, regular - 1 + hubs * regular)
    graph = nx.path_graph(regular)
    graph.add_edges_from((hub, agent) for hub in range(regular, agents) for agent in range(regular))
    return _network("fan", graph, poisoned)


def lower_bound(regular: int = 4, poisoned: int = 4) -> Network:
    """The network of Theorem 3: a clique of regular agents with two poisoned neighbours each.

    Regular agents are ``0 … R-1``, poisoned ones the last, not linked to each other. The poisoned
    agents belong to two layers in turn. Each layer cuts the circle of regular agents into
    consecutive blocks of at least two, a block for each of its poisoned agents; the second layer
    cuts one agent later. With four and four that is Figure 9. Agent 0 and the first agent of the
    first layer's second block have no poisoned neighbour in common.

    This takes ``R ≥ 4`` and four to ``R`` poisoned agents (``R - 1`` for odd ``R``). Poisoned
    agents beyond that are linked to every regular one. With fewer than four regular or poisoned
    agents all poisoned ones are.
    """
    agents = whole("regular", regular, 2) + whole("poisoned", poisoned, 1)
    most = regular * (regular - 1) // 2 + max(0, poisoned - regular) * regular + 2 * regular
    check_size(agents, most)
    graph = nx.complete_graph(regular)
    blocks: list[list[int]] = [list(range(regular))] * poisoned
    if regular >= 4 and poisoned >= 4:
        layered = min(poisoned, regular - regular % 2)
        for layer in (0, 1):
            circle = np.roll(np.arange(regular), -layer)
            places = range(layer, layered, 2)
            for place, part in zip(places, np.array_split(circle, len(places)), strict=True):
                blocks[place] = part.tolist()
    for agent, block in enumerate(blocks, start=regular):
        graph.add_edges_from((agent, neighbour) for neighbour in block)
    return _network("lower_bound", graph, poisoned)


def complete(agents: int = 10, poisoned: Poisoned = 1) -> Network:
    """Every agent linked to every other. ``poisoned = n`` means the last ``n``."""
    check_size(whole("agents", agents, 2), agents * (agents - 1) // 2)
    return _network("complete", nx.complete_graph(agents), poisoned)


def ring(agents: int = 10, poisoned: Poisoned = 1) -> Network:
    """A cycle ``0 - 1 - … - W-1 - 0``. ``poisoned = n`` means the last ``n``."""
    check_size(whole("agents", agents, 3), agents)
    return _network("ring", nx.cycle_graph(agents), poisoned)


def star(agents: int = 10, poisoned: Poisoned = 1) -> Network:
    """Agent 0 linked to all others. ``poisoned = n`` means the last ``n``."""
    check_size(whole("agents", agents, 2), agents - 1)
    return _network("star", nx.star_graph(agents - 1), poisoned)


def torus(rows: int = 4, columns: int = 4, poisoned: Poisoned = 1) -> Network:
    """A grid wrapped around at its borders; agent ``r * columns + c`` sits at row r, column c."""
    sizes = whole("rows", rows, 3), whole("columns", columns, 3)
    check_size(rows * columns, 2 * rows * columns)
    grid = nx.grid_2d_graph(*sizes, periodic=True)
    graph = nx.relabel_nodes(grid, {(r, c): r * columns + c for r, c in grid})
    return _network("torus", graph, poisoned)


def erdos_renyi(
    agents: int = 10, probability: float = 0.5, poisoned: Poisoned = 1, seed: int = 0
) -> Network:
    """Each pair linked with the given probability, drawn again until connected."""
    whole("agents", agents, 2)
    if positive("probability", probability) > 1:
        raise BezoarError(f"probability: expected a number in (0, 1], found {probability}")
    check_size(agents, int(probability * agents * (agents - 1) / 2))
    # What is smaller than this cannot be told from zero where networkx takes it from one.
    drawn = max(probability, float(np.finfo(np.float64).epsneg))
    graph = _connected_draw(
        lambda rng: nx.fast_gnp_random_graph(agents, drawn, seed=rng),
        seed,
        f"erdos_renyi with probability {probability}: raise the probability",
    )
    return _network("erdos_renyi", graph, poisoned)


def random_regular(
    agents: int = 10, degree: int = 4, poisoned: Poisoned = 1, seed: int = 0
) -> Network:
    """A random graph in which everyone has ``degree`` neighbours, drawn again until connected."""
    whole("agents", agents, 2)
    if not 1 <= whole("degree", degree, 0) < agents or agents * degree % 2:
        raise BezoarError(
            f"degree: expected 1 … {agents - 1} with agents × degree even, "
            f"found {degree} for {agents} agents"
        )
    check_size(agents, agents * degree // 2)
    graph = _connected_draw(
        lambda rng: nx.random_regular_graph(degree, agents, seed=rng),
        seed,
        f"random_regular with degree {degree}: raise the degree",
    )
    return _network("random_regular", graph, poisoned)


def _connected_draw(
    draw: Callable[[np.random.Generator], nx.Graph], seed: int, advice: str
) -> nx.Graph:
    rng = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0)))
    for _ in range(DRAWS):
        graph = draw(rng)
        if nx.is_connected(graph):
            return graph
    raise BezoarError(f"{advice}; none of {DRAWS} draws was connected")


def check_size(agents: int, links: int) -> None:
    """Refuse, before it is made, a network that is too large."""
    if agents > MOST_AGENTS:
        raise BezoarError(f"it would have {agents:,} agents; allowed: at most {MOST_AGENTS:,}")
    if links > MOST_LINKS:
        raise BezoarError(
            f"{agents:,} agents would have {links:,} links; allowed: at most {MOST_LINKS:,}"
        )


def _network(name: str, graph: nx.Graph, poisoned: Poisoned, middle: int | None = None) -> Network:
    """The network of a topology; for its poisoned agents see :func:`poison`."""
    return poison(Network(graph, (), name=name), poisoned, middle)


def poison(network: Network, poisoned: Poisoned, middle: int | None = None) -> Network:
    """A network with the named agents poisoned; or a number of them, around ``middle`` or the last.

    Agents are given by their names; a number is the name of the agent that is called so.
    """
    poisoned = plain_number(poisoned)
    if not isinstance(poisoned, int) or isinstance(poisoned, bool):
        return network.with_poisoned(_names(poisoned))
    agents = network.agents
    if not 0 <= poisoned < agents:
        raise BezoarError(
            f"poisoned: expected 0 … {agents - 1} of {agents} agents, found {poisoned}"
        )
    # By the distance from the middle, the higher first: middle, middle + 1, middle - 1, ….
    start = agents if middle is None else middle
    order = sorted(range(agents), key=lambda agent: (abs(agent - start), -agent))
    return network.with_poisoned(order[:poisoned])


def _names(poisoned: Poisoned) -> list[Any]:
    """The names of some agents: a number is the name of the agent that is called so."""
    if not isinstance(poisoned, Collection) or isinstance(poisoned, str):
        raise BezoarError(
            f"poisoned: expected how many agents or a collection of them, found {poisoned!r}"
        )
    plain = [plain_number(agent) for agent in poisoned]
    return [str(agent) if type(agent) is int else agent for agent in plain]
