"""Drawings of networks: regular agents are blue dots, poisoned ones red squares."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from bezoar.networks import Network
from bezoar.report._style import POISONED, REGULAR

Positions = dict[int, NDArray[np.float64]]

#: In larger networks agents are drawn without their numbers, which would be too small to read.
NUMBERED = 40

#: Larger networks are not drawn in the HTML report: nothing could be seen.
DRAWN = 400

#: Pixels of a drawing in the HTML report: its width, its least height, and its margin.
WIDTH, HEIGHT, MARGIN = 340.0, 80.0, 20.0


def draw_network(network: Network, axes: Any, labels: Mapping[int, str] | None = None) -> None:
    """Draw a network into matplotlib axes; agents are labelled with their numbers by default."""
    graph, positions = network.graph, agent_positions(network)
    few = network.agents <= NUMBERED
    size = 260 if few else max(6, 4000 / network.agents)
    colour = "#888888" if few else "#BBBBBB"
    width, alpha = (0.8, 0.7) if len(network.edges) > 3 * network.agents else (1.3, 1.0)
    nx.draw_networkx_edges(graph, positions, None, width, colour, alpha=alpha, ax=axes)
    style: dict[str, Any] = {"node_size": size, "edgecolors": "white", "linewidths": 1.0}
    kinds = ((network.regular, REGULAR, "o"), (network.poisoned, POISONED, "s"))
    for agents, fill, shape in kinds:
        style |= {"node_color": fill, "node_shape": shape}
        dots = nx.draw_networkx_nodes(graph, positions, list(agents), ax=axes, **style)
        dots.set_clip_on(False)
    if few:
        style = {"font_color": "white", "font_size": 8, "font_weight": "bold", "clip_on": False}
        nx.draw_networkx_labels(graph, positions, labels, ax=axes, **style)
    axes.set_axis_off()
    axes.margins(0.08)
    axes.set_aspect("equal")


def drawing(network: Network) -> dict[str, Any] | None:
    """Where the report draws the parts of a network, in pixels; ``None`` if it is too large."""
    if network.agents > DRAWN:
        return None
    positions = agent_positions(network)
    points = np.array([positions[agent] for agent in range(network.agents)])
    low, high = points.min(0), points.max(0)
    scale = (WIDTH - 2 * MARGIN) / max(*(high - low), 1e-9)
    height = max(HEIGHT, scale * (high - low)[1] + 2 * MARGIN)
    places = scale * (points - (low + high) / 2) * (1, -1) + np.array([WIDTH, height]) / 2
    few = network.agents <= NUMBERED
    radius = 11.5 if few else max(2.5, 60 / np.sqrt(network.agents))
    size = {"width": WIDTH, "height": height, "radius": radius}
    return {**size, "places": places.tolist(), "numbered": few}


def agent_positions(network: Network) -> Positions:
    """Where each agent is drawn: x to the right and y upwards, in any unit."""
    if network.name in _LAYOUTS:
        return _LAYOUTS[network.name](network)
    if network.agents <= 12:
        return _circle(range(network.agents))
    if network.agents <= 100:
        return dict(nx.kamada_kawai_layout(network.graph))
    return dict(nx.spring_layout(network.graph, seed=0))


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
