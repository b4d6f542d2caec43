"""Where agents are drawn."""

from collections.abc import Callable, Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from bezoar.networks import Network

Points = NDArray[np.float64]
Positions = dict[int, Points]

#: The most agents of a network that is laid out by all shortest paths, and by forces.
EXACT, FORCES = 80, 400

#: How many agents' distances lay out a large network.
PIVOTS = 40

#: How often agents that are too near to each other are moved apart.
SPREADING = 60


def agent_positions(network: Network) -> Points:
    """``[W, 2]`` where each agent is drawn: x to the right and y upwards, in any unit.

    An agent's own coordinates come first. A topology has a drawing of its own. Other networks are
    laid out by the distances between agents, and agents that would overlap are moved apart.
    """
    if network.positions is not None:
        return network.positions
    agents = range(network.agents)
    found: Positions | None = None
    if network.name in _LAYOUTS:
        found = _LAYOUTS[network.name](network)
    elif network.agents <= 12:
        found = _circle(agents)
    if found is not None:
        return np.array([found[agent] for agent in agents])
    start = dict(enumerate(spread(_by_pivots(network.adjacency), 0.02)))
    if network.agents <= EXACT:
        found = nx.kamada_kawai_layout(network.graph, pos=start)
    elif network.agents <= FORCES:
        found = nx.spring_layout(network.graph, pos=start, seed=0)
    else:
        found = start
    gap = 0.75 if network.agents <= EXACT else 0.5
    return spread(np.array([found[agent] for agent in agents]), gap / np.sqrt(network.agents))


def spread(points: Points, gap: float) -> Points:
    """Points moved apart until few are nearer to each other than ``gap`` times their extent."""
    low, high = points.min(0), points.max(0)
    moved: Points = (points - low) / max((high - low).max(), 1e-9)
    # Points on top of each other need a direction; the golden angle gives each another one.
    angles = 2.399963 * np.arange(len(points))
    moved += 1e-4 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for _ in range(SPREADING):
        pairs = cKDTree(moved).query_pairs(gap, output_type="ndarray")
        if not len(pairs) or len(pairs) > 100 * len(points):
            break
        between = moved[pairs[:, 1]] - moved[pairs[:, 0]]
        length = np.maximum(np.linalg.norm(between, axis=1, keepdims=True), 1e-9)
        push = 0.5 * (gap - length) * between / length
        np.add.at(moved, pairs[:, 1], push)
        np.add.at(moved, pairs[:, 0], -push)
    return moved


def _by_pivots(adjacency: sparse.csr_array) -> Points:
    """``[W, 2]`` the plane in which distances to some agents, far from each other, differ most."""
    agents = adjacency.shape[0]
    pivot, nearest, rows = 0, np.full(agents, np.inf), []
    for _ in range(min(PIVOTS, agents)):
        row = sparse.csgraph.dijkstra(adjacency, unweighted=True, indices=pivot)
        nearest = np.minimum(nearest, row)
        rows.append(row**2)
        pivot = int(nearest.argmax())
    squares = np.stack(rows, axis=1)
    centred = squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    found: Points = centred @ vectors[:, :-3:-1]
    # An eigenvector's sign is arbitrary; this one is the same on every machine.
    found *= np.where(found[np.abs(found).argmax(0), [0, 1]] < 0, -1, 1)
    return found


def _circle(agents: Sequence[int], middle: float = 0.0) -> Positions:
    """Agents clockwise around a circle, the first at the top; ``middle`` is the circle's x."""
    angles = 2 * np.pi * (0.25 - np.arange(len(agents)) / len(agents))
    points = np.stack([middle + np.cos(angles), np.sin(angles)], axis=1)
    return dict(zip(agents, points, strict=True))


def _two_castle(network: Network) -> Positions:
    agents, half = range(network.agents), network.agents // 2
    return _circle(agents[:half], -1.6) | _circle(agents[half:], 1.6)


def _line(network: Network) -> Positions:
    """A zigzag, which leaves room for the numbers."""
    return {agent: np.array([0.7 * agent, 0.35 * (-1) ** agent]) for agent in range(network.agents)}


def _fan(network: Network) -> Positions:
    """The path on an arc, and below it the hubs, which are linked to the whole path."""
    agents = range(network.agents)
    # The path is numbered first, so a hub's neighbours are 0, 1, … without a gap.
    linked = {a: network.neighbours(a) == tuple(range(network.degrees[a])) for a in agents}
    hubs = [agent for agent in agents if agent > 1 and linked[agent]]
    path = [agent for agent in agents if agent not in hubs]
    angles = np.linspace(0.9 * np.pi, 0.1 * np.pi, len(path))
    arc = dict(zip(path, 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1), strict=True))
    places = np.linspace(-1, 1, len(hubs) + 2)[1:-1]
    return arc | {hub: np.array([x, -0.4]) for hub, x in zip(hubs, places, strict=True)}


def _torus(network: Network) -> Positions:
    """The grid, with every other row moved a little so that the links around it can be seen."""
    columns = next((v + 1 for v in network.neighbours(0)[1:] if v > 1), 1)
    if columns == 1 or network.agents % columns:
        return _circle(range(network.agents))
    cells = {agent: divmod(agent, columns) for agent in range(network.agents)}
    return {agent: np.array([x + 0.15 * (y % 2), -y]) for agent, (y, x) in cells.items()}


def _lower_bound(network: Network) -> Positions:
    """Regular agents on an inner circle; outside, poisoned ones near those they are linked to."""
    inner, outer = _circle(network.regular), {}
    taken: list[float] = []
    apart = min(0.25, np.pi / (2 * max(1, len(network.poisoned))))  # there is room for all
    for agent in network.poisoned:
        x, y = sum((inner[v] for v in network.neighbours(agent) if v in inner), np.zeros(2))
        angle = float(np.arctan2(y, x)) if np.hypot(x, y) > 1e-6 else 0.0
        while any(abs(np.angle(np.exp(1j * (angle - other)))) < apart for other in taken):
            angle += 0.3
        taken.append(angle)
        outer[agent] = 1.9 * np.array([np.cos(angle), np.sin(angle)])
    return inner | outer


_LAYOUTS: dict[str, Callable[[Network], Positions]] = {
    "two_castle": _two_castle,
    "line": _line,
    "fan": _fan,
    "star": lambda network: {0: np.zeros(2)} | _circle(range(1, network.agents)),
    "torus": _torus,
    "lower_bound": _lower_bound,
}
