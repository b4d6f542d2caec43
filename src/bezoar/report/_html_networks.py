"""The networks of a report: drawn, with what the theory says of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from bezoar import theory
from bezoar._errors import BezoarError
from bezoar._numbers import count
from bezoar.experiments import RunSpec, network_of
from bezoar.networks import Network
from bezoar.report._networks import NUMBERED, Positions, agent_positions

#: More agents than this are not drawn: it would show nothing.
DRAWN = 400

#: Agents that are listed by number.
LISTED = 12

#: Pixels: the width of a drawing, its least height, and the air around its agents.
WIDTH, HEIGHT, AIR = 340.0, 80.0, 20.0


@dataclass(frozen=True)
class NetworkPage:
    """A network.

    Attributes:
        id: what the page's links name it by.
        title: as in specs.
        words: agents, links, and who is poisoned; or why it cannot be made any more.
        drawing: an SVG image; ``None`` where there are too many agents.
        theory: what :func:`bezoar.theory.overview` says, for each mixing matrix that runs use.
    """

    id: str
    title: str
    words: str
    drawing: Markup | None = None
    theory: tuple[dict[str, Any], ...] = ()


def network_pages(specs: Iterable[RunSpec]) -> list[NetworkPage]:
    """A page for every network of some runs.

    The baseline's networks, in which nobody is poisoned, are left out where the same graph is
    there with poisoned agents.
    """
    found: dict[tuple[str, tuple[int, ...]], tuple[Network, list[str]]] = {}
    problems: dict[str, str] = {}
    for spec in specs:
        try:
            network = network_of(spec)
        except BezoarError as error:
            problems[str(spec.network)] = str(error)
            continue
        used = found.setdefault((str(spec.network), network.poisoned), (network, []))[1]
        mixing = str(spec.aggregator.options.get("mixing", "metropolis"))
        if mixing not in used:
            used.append(mixing)
    poisoned = {title for title, who in found if who}
    shown = {key: value for key, value in found.items() if key[1] or key[0] not in poisoned}
    pages = [_page(title, network, used) for (title, _), (network, used) in shown.items()]
    pages += [NetworkPage("", title, problem) for title, problem in problems.items()]
    return [
        NetworkPage(f"network-{place}", page.title, page.words, page.drawing, page.theory)
        for place, page in enumerate(pages, start=1)
    ]


def _page(title: str, network: Network, mixings: list[str]) -> NetworkPage:
    pages = [_theory(network, mixing) for mixing in mixings]
    return NetworkPage("", title, describe(network), drawing(network), tuple(pages))


def _theory(network: Network, mixing: str) -> dict[str, Any]:
    found = theory.overview(network, mixing)
    agent = found["delta_max_agent"]
    inputs = {"poisoned": network.poisoned_inputs[agent], "all": network.degrees[agent] + 1}
    return found | {"delta_max_inputs": inputs}


def describe(network: Network) -> str:
    """Agents, links and who is poisoned, in words."""
    agents, links = count(network.agents, "agent"), count(network.adjacency.nnz // 2, "link")
    return f"{agents}, {links}; poisoned: {listed(network.poisoned)}"


def listed(agents: Iterable[int]) -> str:
    """Agents by number, the first of them if there are many."""
    names = [str(agent) for agent in agents]
    if not names:
        return "nobody"
    if len(names) <= LISTED:
        return ", ".join(names)
    return f"{', '.join(names[:LISTED])}, … ({len(names)} in all)"


def drawing(network: Network) -> Markup | None:
    """A network as an SVG image: regular agents blue dots, poisoned ones red squares."""
    if network.agents > DRAWN:
        return None
    places, height = _pixels(agent_positions(network))
    few = network.agents <= NUMBERED
    radius = 11.5 if few else max(2.5, 60 / np.sqrt(network.agents))
    links = "".join(
        "M{:.0f} {:.0f}L{:.0f} {:.0f}".format(*places[one], *places[other])
        for one, other in network.edges
    )
    parts = [Markup('<path class="links" d="{}"/>').format(links)]
    for agent, (x, y) in sorted(places.items()):
        parts.append(_dot(x, y, radius, bool(network.poisoned_mask[agent])))
        if few:
            parts.append(Markup('<text x="{:.1f}" y="{:.1f}">{}</text>').format(x, y + 4, agent))
    return Markup(
        '<svg class="network" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, height, f"{network.name}: {describe(network)}", Markup("").join(parts))


def _dot(x: float, y: float, radius: float, poisoned: bool) -> Markup:
    if not poisoned:
        return Markup('<circle class="regular" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>').format(
            x, y, radius
        )
    side = 1.8 * radius
    return Markup(
        '<rect class="poisoned" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="1.5"/>'
    ).format(x - side / 2, y - side / 2, side, side)


def _pixels(positions: Positions) -> tuple[dict[int, tuple[float, float]], float]:
    """Positions in pixels from the upper left, and the drawing's height."""
    points = np.array(list(positions.values()))
    low, high = points.min(0), points.max(0)
    wide, tall = np.maximum(high - low, 1e-9)
    scale = min((WIDTH - 2 * AIR) / wide, (WIDTH - 2 * AIR) / tall)
    height = max(HEIGHT, scale * tall + 2 * AIR)
    middle = (low + high) / 2
    return {
        agent: (
            float(WIDTH / 2 + scale * (x - middle[0])),
            float(height / 2 - scale * (y - middle[1])),
        )
        for agent, (x, y) in positions.items()
    }, height
