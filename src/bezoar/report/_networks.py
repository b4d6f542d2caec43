"""Drawings of networks: regular agents blue, poisoned ones red."""

from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from bezoar.networks import Network
from bezoar.report._style import POISONED, REGULAR

Positions = dict[int, NDArray[np.float64]]

#: Above this many agents, numbers in the dots would be unreadable.
NUMBERED = 40


def draw_network(network: Network, axes: Any, labels: Mapping[int, str] | None = None) -> None:
    """Draw a network into matplotlib axes: regular agents blue dots, poisoned ones red squares.

    Args:
        network: what to draw.
        axes: where to.
        labels: what to write into the agents, by default their numbers.
    """
    positions = agent_positions(network)
    few = network.agents <= NUMBERED
    size = 260 if few else max(6, 4000 / network.agents)
    dense = len(network.edges) > 3 * network.agents
    nx.draw_networkx_edges(
        network.graph,
        positions,
        ax=axes,
        edge_color="#888888" if few else "#BBBBBB",
        width=0.8 if dense else 1.3,
        alpha=0.7 if dense else 1.0,
    )
    for agents, colour, shape in (
        (network.regular, REGULAR, "o"),
        (network.poisoned, POISONED, "s"),
    ):
        dots = nx.draw_networkx_nodes(
            network.graph,
            positions,
            nodelist=list(agents),
            node_color=colour,
            node_shape=shape,
            node_size=size,
            edgecolors="white",
            linewidths=1.0,
            ax=axes,
        )
        dots.set_clip_on(False)
    if few:
        nx.draw_networkx_labels(
            network.graph,
            positions,
            labels,
            font_color="white",
            font_size=8,
            font_weight="bold",
            clip_on=False,
            ax=axes,
        )
    axes.set_axis_off()
    axes.margins(0.08)
    axes.set_aspect("equal")


def agent_positions(network: Network) -> Positions:
    """Where each agent is drawn, x to the right and y upwards, in any units."""
    layout = _LAYOUTS.get(network.name)
    if layout is not None:
        return layout(network)
    if network.agents <= 12:
        return _circle(range(network.agents))
    if network.agents <= 100:
        return dict(nx.kamada_kawai_layout(network.graph))
    return dict(nx.spring_layout(network.graph, seed=0))


def _circle(agents: Any, centre: tuple[float, float] = (0, 0), turn: float = 0.25) -> Positions:
    """Agents clockwise around a circle, the first at ``turn`` of a full turn."""
    agents = list(agents)
    angles = 2 * np.pi * (turn - np.arange(len(agents)) / len(agents))
    return {
        agent: np.array([centre[0] + np.cos(angle), centre[1] + np.sin(angle)])
        for agent, angle in zip(agents, angles, strict=True)
    }


def _two_castle(network: Network) -> Positions:
    half = network.agents // 2
    left = _circle(range(half), (-1.6, 0), turn=0.25)
    right = _circle(range(half, network.agents), (1.6, 0), turn=0.25)
    return left | right


def _line(network: Network) -> Positions:
    """A zigzag, which leaves room for the numbers."""
    return {agent: np.array([0.7 * agent, 0.35 * (-1) ** agent]) for agent in range(network.agents)}


def _fan(network: Network) -> Positions:
    """The path on an arc, and below it the agents that are linked to all of the path."""
    hubs = [agent for agent in range(network.agents) if _is_hub(network, agent)]
    path = [agent for agent in range(network.agents) if agent not in hubs]
    angles = np.linspace(0.9 * np.pi, 0.1 * np.pi, len(path))
    arc = {
        agent: np.array([2 * np.cos(angle), 2 * np.sin(angle)])
        for agent, angle in zip(path, angles, strict=True)
    }
    places = np.linspace(-1, 1, len(hubs) + 2)[1:-1]
    return arc | {hub: np.array([x, -0.4]) for hub, x in zip(hubs, places, strict=True)}


def _is_hub(network: Network, agent: int) -> bool:
    """Whether a fan's agent is linked to all of the path; the path is numbered first."""
    return network.neighbours(agent) == tuple(range(network.degrees[agent])) and agent > 1


def _star(network: Network) -> Positions:
    return {0: np.zeros(2)} | _circle(range(1, network.agents))


def _torus(network: Network) -> Positions:
    """The grid, rows of it shifted a little so that the wrapped links show."""
    columns = next((v + 1 for v in network.neighbours(0)[1:] if v > 1), 1)
    if columns == 1 or network.agents % columns:
        return _circle(range(network.agents))
    return {
        agent: np.array([agent % columns + 0.15 * (agent // columns % 2), -(agent // columns)])
        for agent in range(network.agents)
    }


def _lower_bound(network: Network) -> Positions:
    """Regular agents on an inner circle, poisoned ones outside, near those they are linked to."""
    inner = _circle(network.regular)
    outer = {}
    taken: list[float] = []
    apart = min(0.25, np.pi / (2 * max(1, len(network.poisoned))))  # there is room for all
    for agent in network.poisoned:
        regular = (v for v in network.neighbours(agent) if v in inner)
        pull = sum((inner[v] for v in regular), np.zeros(2))
        angle = float(np.arctan2(pull[1], pull[0])) if np.linalg.norm(pull) > 1e-6 else 0.0
        while any(abs(np.angle(np.exp(1j * (angle - other)))) < apart for other in taken):
            angle += 0.3
        taken.append(angle)
        outer[agent] = 1.9 * np.array([np.cos(angle), np.sin(angle)])
    return inner | outer


_LAYOUTS: dict[str, Callable[[Network], Positions]] = {
    "two_castle": _two_castle,
    "line": _line,
    "fan": _fan,
    "star": _star,
    "torus": _torus,
    "lower_bound": _lower_bound,
}
