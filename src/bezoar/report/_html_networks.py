"""The networks of a report: drawn, with what the theory says of them."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from bezoar import theory
from bezoar._errors import BezoarError
from bezoar.experiments import StoredRun, network_of_run, spec_of
from bezoar.networks import Network
from bezoar.report._networks import NUMBERED, Positions, agent_positions
from bezoar.report._page import Page
from bezoar.report._style import look
from bezoar.report._theory import describe, theory_page

#: More agents than this are not drawn: it would show nothing.
DRAWN = 400

#: The mixing matrix of rules that do not name another.
MIXING = "metropolis"

#: Pixels: the width of a drawing, its least height, and the air around its agents.
WIDTH, HEIGHT, AIR = 340.0, 80.0, 20.0


def network_pages(runs: Sequence[StoredRun]) -> list[Page]:
    """What the theory says of every network of some runs, for each mixing matrix in use.

    The baseline's networks, in which nobody is poisoned, are left out where the same graph is
    there with poisoned agents.
    """
    found: dict[tuple[str, tuple[int, ...], str], Network] = {}
    problems: dict[str, str] = {}
    for run in runs:
        spec = spec_of(run)
        title, mixing = str(spec.network), spec.aggregator.options.get("mixing", MIXING)
        try:
            network = network_of_run(run)
        except BezoarError as error:
            problems[title] = str(error)
            continue
        found[title, network.poisoned, str(mixing)] = network
    poisoned = {title for title, who, _ in found if who}
    pages = [
        theory_page(
            title if mixing == MIXING else f"{title}, {mixing} mixing matrix",
            network,
            theory.overview(network, mixing),
            label=lambda rule: look(rule).label,
        )
        for (title, who, mixing), network in found.items()
        if who or title not in poisoned
    ]
    return pages + [
        Page(name="theory", title=title, caption=problem) for title, problem in problems.items()
    ]


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
    side = 1.8 * radius
    shape = (
        '<rect class="poisoned" x="{0:.1f}" y="{1:.1f}" width="{2:.1f}" height="{2:.1f}" rx="1.5"/>'
        if poisoned
        else '<circle class="regular" cx="{3:.1f}" cy="{4:.1f}" r="{5:.1f}"/>'
    )
    return Markup(shape).format(x - side / 2, y - side / 2, side, x, y, radius)


def _pixels(positions: Positions) -> tuple[dict[int, tuple[float, float]], float]:
    """Positions in pixels from the upper left, and the drawing's height."""
    points = np.array(list(positions.values()))
    low, high = points.min(0), points.max(0)
    wide, tall = np.maximum(high - low, 1e-9)
    scale = min((WIDTH - 2 * AIR) / wide, (WIDTH - 2 * AIR) / tall)
    height = max(HEIGHT, scale * tall + 2 * AIR)
    centred = scale * (points - (low + high) / 2) * (1, -1)
    pixels = (centred + np.array([WIDTH / 2, height / 2])).tolist()
    return {agent: (x, y) for agent, (x, y) in zip(positions, pixels, strict=True)}, height
