"""Drawings of networks: regular agents are blue dots, poisoned ones red squares."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from bezoar.networks import Network
from bezoar.report._layouts import Points, agent_positions
from bezoar.report._style import POISONED, REGULAR, literal, pictures

#: In networks with more agents, names would be too small to read. Only those of poisoned agents are
#: shown, if there are at most so many of them.
NAMED, POISONED_NAMED = 60, 12

#: Larger networks are drawn as the density of their links.
DRAWN = 400

#: The most characters of a name in a drawing, and of one that fits into an agent's dot.
LONGEST, INSIDE = 18, 3

#: Pixels of a drawing in the HTML report: its width, its least height, and its margin.
WIDTH, HEIGHT, MARGIN = 340.0, 80.0, 24.0

#: The height of a name's letters in matplotlib's points and in the report's pixels, and the width
#: of a letter as a share of it.
POINTS, PIXELS, LETTER = 7.0, 10.0, 0.6

#: The same of bold digits, which are inside dots: their width and height.
BOLD = 0.7, 0.73


@dataclass(frozen=True)
class Name:
    """An agent's name in a drawing: how far the middle of the text is from that of the dot."""

    agent: int
    text: str
    size: float
    right: float = 0.0
    down: float = 0.0

    @property
    def inside(self) -> bool:
        """Whether it is inside the dot."""
        return self.right == self.down == 0


def draw_network(network: Network, axes: Any, labels: Mapping[int, str] | None = None) -> None:
    """Draw a network into matplotlib axes; agents are labelled with their names by default."""
    from matplotlib.patheffects import withStroke

    if network.agents > DRAWN:
        _draw_density(network, axes)
        return
    box = axes.get_window_extent()
    points_per_pixel = 72 / axes.figure.dpi
    # Titles and legends will take some of the room.
    width, height = (0.85 * points_per_pixel * length for length in (box.width, box.height))
    points = agent_positions(network)
    extent = np.maximum(points.max(0) - points.min(0), 1e-9)
    scale = min(width / extent[0], height / extent[1])  # units to typographic points
    radius = _radius(points * scale, network)
    places = dict(enumerate(points))
    crowded = len(network.edges) > 3 * network.agents or network.agents > NAMED
    thin = {"width": 0.7 if crowded else 1.2, "alpha": 0.6 if crowded else 1.0}
    nx.draw_networkx_edges(network.graph, places, edge_color="#9AA0A8", ax=axes, **thin)
    style: dict[str, Any] = {"node_size": (2 * radius) ** 2, "edgecolors": "white"}
    style["linewidths"] = 1.0 if radius > 4 else 0.4
    for agents, fill, shape in (
        (network.regular, REGULAR, "o"),
        (network.poisoned, POISONED, "s"),
    ):
        style |= {"node_color": fill, "node_shape": shape}
        if agents is network.poisoned and radius < 4:
            style["node_size"] *= 2  # or they would not be found
        dots = nx.draw_networkx_nodes(network.graph, places, list(agents), ax=axes, **style)
        dots.set_clip_on(False)
    room = np.array([radius + 3 * POINTS, radius + 2 * POINTS]) / scale
    (left, bottom), (right, top) = points.min(0) - room, points.max(0) + room
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_axis_off()
    sides = tuple(scale * side for side in (left, -top, right, -bottom))
    for name in _names(points * scale * (1, -1), radius, POINTS, network, sides, labels):
        style = {"color": "white", "weight": "bold"}
        if not name.inside:
            style = {"color": "#1c2128"}
            style["path_effects"] = [withStroke(linewidth=2, foreground="white")]
        style |= {"textcoords": "offset points", "annotation_clip": False, "zorder": 5}
        place, offset = points[name.agent], (name.right, -name.down)
        style |= {"ha": "center", "va": "center", "size": name.size}
        axes.annotate(literal(name.text), place, offset, **style)


def _radius(points: Points, network: Network) -> float:
    """The size of dots, so that hardly any two overlap."""
    if network.agents == 1:
        return 8.0
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    most = 8.5 if max(map(len, network.names)) <= INSIDE else 5.5
    return float(np.clip(0.36 * np.quantile(nearest, 0.1), 2.0, most))


def drawing(network: Network) -> dict[str, Any]:
    """What the report draws of a network, in pixels; of a large one, a picture."""
    if network.agents > DRAWN:
        return {"image": _density_picture(network)}
    points = agent_positions(network)
    low, high = points.min(0), points.max(0)
    scale = (WIDTH - 2 * MARGIN) / max(*(high - low), 1e-9)
    height = max(HEIGHT, scale * (high - low)[1] + 2 * MARGIN)
    places = scale * (points - (low + high) / 2) * (1, -1) + np.array([WIDTH, height]) / 2
    radius = 1.3 * _radius(places, network)
    names = list(_names(places, radius, PIXELS, network, (0.0, 0.0, WIDTH, height)))
    size = {"width": WIDTH, "height": height, "radius": radius}
    return {**size, "places": places.tolist(), "names": names, "image": ""}


def _names(
    places: Points,
    radius: float,
    letters: float,
    network: Network,
    sides: tuple[float, ...],
    labels: Mapping[int, str] | None = None,
) -> Iterator[Name]:
    """The names that can be read: inside the dots where they fit, else beside them.

    Places are in the unit of the height of ``letters``, y downwards; the ``sides`` of the drawing
    are left, top, right and bottom. Beside a dot, a name is where it covers least of dots and other
    names.
    """
    given = (labels or dict(enumerate(network.names))).values()
    texts = [text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text in given]
    longest = max(map(len, texts))
    size = min(letters + 1, 1.75 * radius / np.hypot(BOLD[0] * longest, BOLD[1]))
    if longest <= INSIDE and size >= 0.8 * letters:
        yield from (Name(agent, text, size) for agent, text in enumerate(texts))
        return
    shown: Sequence[int] = range(network.agents)
    if network.agents > NAMED:
        shown = network.poisoned if len(network.poisoned) <= POISONED_NAMED else ()
    covered = [(x, y, 2 * radius, 2 * radius) for x, y in places.tolist()]
    for agent in shown:
        width, (x, y) = LETTER * letters * len(texts[agent]), places[agent].tolist()
        down, across = radius + 0.7 * letters, radius + 0.5 * width + 2
        around = [(0.0, down), (0.0, -down), (across, 0.0), (-across, 0.0)]
        around += [(0.9 * dx, 0.9 * dy) for dx in (across, -across) for dy in (down, -down)]
        boxes = [(x + dx, y + dy, width, letters) for dx, dy in around]
        best = min(boxes, key=lambda box: _covers(box, covered, sides))
        covered.append(best)
        yield Name(agent, texts[agent], letters, best[0] - x, best[1] - y)


def _covers(
    box: tuple[float, ...], others: Sequence[tuple[float, ...]], sides: tuple[float, ...]
) -> float:
    """The area of a box that is covered by others, or lies outside of the drawing."""
    left, top, right, bottom = sides
    page = (0.5 * (left + right), 0.5 * (top + bottom), right - left, bottom - top)
    outside = box[2] * box[3] - _overlap(box, page)
    return 3 * outside + sum(_overlap(box, other) for other in others)


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area that two boxes share, given by their middles and sizes."""
    wide = 0.5 * (one[2] + other[2]) - abs(one[0] - other[0])
    high = 0.5 * (one[3] + other[3]) - abs(one[1] - other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    return min(wide, one[2], other[2]) * min(high, one[3], other[3])


def _draw_density(network: Network, axes: Any) -> None:
    """A large network: how dense its links are, where poisoned agents are, and the degrees."""
    axes.set_axis_off()
    points = agent_positions(network)
    image, extent = _link_density(network, points)
    where = axes.inset_axes((0.0, 0.3, 1.0, 0.7))
    shown = np.ma.masked_less(image, 0.02)  # where there is nothing, the page shows
    where.imshow(shown, extent=extent, origin="lower", cmap="Blues", vmin=-0.1, vmax=1.4)
    size = float(np.clip(4000 / network.agents, 0.3, 4))
    regular, poisoned = list(network.regular), list(network.poisoned)
    where.scatter(*points[regular].T, s=size, c=REGULAR, linewidths=0, alpha=0.5)
    marked = {"s": max(2 * size, 9 if len(poisoned) <= 300 else 3), "c": POISONED, "marker": "s"}
    where.scatter(*points[poisoned].T, linewidths=0, **marked)
    where.set_axis_off()
    below = axes.inset_axes((0.14, 0.08, 0.82, 0.17))
    fewest, most = int(network.degrees.min()), int(network.degrees.max())
    edges = np.unique(np.linspace(fewest, most + 1, 40).round()) - 0.5
    below.hist(network.degrees[regular], edges, color=REGULAR)
    below.hist(network.degrees[poisoned], edges, color=POISONED, rwidth=0.5)
    below.set_yscale("log")
    below.set_ylim(bottom=0.7)  # below a single agent
    below.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    below.set_xlabel("neighbours of an agent", fontsize=7)
    below.set_ylabel("agents", fontsize=7)
    below.tick_params(labelsize=6)
    below.grid(False)
    below.spines[["top", "right"]].set_visible(False)


def _link_density(network: Network, points: Points) -> tuple[Points, tuple[float, ...]]:
    """``[rows, columns]`` how many links cross each cell, from 0 to 1; and the sides."""
    low, high = points.min(0), points.max(0)
    room = 0.03 * (high - low).max()
    low, high = low - room, high + room
    rows, columns = (max(2, round(260 * side)) for side in (high - low) / (high - low).max())
    counts = np.zeros((rows, columns))
    sides = [(float(low[axis]), float(high[axis])) for axis in (0, 1)]
    ends = np.array(network.edges)
    steps = int(np.clip(2_000_000 // len(ends), 16, 120))  # so that long links are no dots
    for share in (np.arange(steps) + 0.5) / steps:
        across, up = ((1 - share) * points[ends[:, 0]] + share * points[ends[:, 1]]).T
        counts += np.histogram2d(across, up, [rows, columns], sides)[0]
    smooth = gaussian_filter(np.log1p(counts), 0.8)
    return smooth.T / max(smooth.max(), 1e-9), (*sides[0], *sides[1])


def _density_picture(network: Network) -> str:
    """The drawing of a large network as a PNG image in a data URI."""
    content = io.BytesIO()
    with pictures() as plt:
        figure, axes = plt.subplots(figsize=(3.6, 4.4), layout="constrained")
        draw_network(network, axes)
        figure.savefig(content, format="png", dpi=160, metadata={"Software": None})
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
