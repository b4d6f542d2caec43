"""Pictures of runs, networks and partitions, drawn with matplotlib."""

import io
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from bezoar._arrays import Floats, Ints
from bezoar._files import write_whole
from bezoar.networks import Network
from bezoar.report._networks import draw_network
from bezoar.report._page import Curve, Panel, check_picture
from bezoar.report._style import Look, legend, literal, pictures
from bezoar.training import METRICS

#: The width of an entry of a legend, in inches.
ENTRY = 1.25

#: Curves with at most this many points have a marker at each.
FEW = 12


def axis_of(metric: str) -> str:
    """The text beside a metric's axis."""
    return METRICS[metric].axis


def panels_figure(
    path: Path, panels: Sequence[Panel], metrics: Sequence[str] = ("accuracy",), title: str = ""
) -> list[Path]:
    """Save a picture with a row for each panel: its network, then a plot of each metric.

    There is one legend for the whole picture. All plots of a metric have the same range. The
    ``title`` is above everything. The files are those of :func:`save_figure`.
    """
    with pictures() as plt:
        figure, grid = plot_grid(plt, len(panels), [1.05] + [1.6] * len(metrics), 3.1, 3.3, 0.7)
        handles: dict[str, Any] = {}
        for panel, row in zip(panels, grid, strict=True):
            for axes in row[2:]:
                axes.sharex(row[1])  # a logarithmic plot begins later: it cannot show zero
            draw_titled(panel, row[0], pad=12)
            for metric, axes in zip(metrics, row[1:], strict=True):
                handles |= plot_curves(axes, panel.curves, metric, panels)
                axes.set_ylabel(axis_of(metric))
        for column in grid[:, 1:].T:
            lows, highs = zip(*(axes.get_ylim() for axes in column), strict=True)
            for axes in column:
                axes.set_ylim(min(lows), max(highs))
            column[-1].set_xlabel("iteration")
        rows = ceil(len(handles) * ENTRY / figure.get_figwidth())
        place = {"loc": "outside lower center", "ncols": ceil(len(handles) / rows)}
        figure.legend(handles.values(), handles.keys(), **place)
        if title:
            figure.suptitle(literal(title), fontsize=10)
        return save_figure(figure, path)


def partition_figure(
    path: Path, counts: Ints, poisoned: Sequence[int] = (), names: Sequence[str] = ()
) -> Path:
    """Save a picture of a partition, given ``[agents, classes]`` numbers of samples.

    Agents are called by their ``names``, by default their numbers.
    """
    agents, classes = counts.shape
    size = (max(4.0, 0.5 * min(classes, 20) + 2), max(2.5, 0.32 * min(agents, 60) + 1.2))
    with pictures() as plt:
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        # Colours begin at zero, so that counts that are nearly alike look alike.
        image = axes.imshow(counts, cmap="cividis", aspect="auto", vmin=0)
        figure.colorbar(image, ax=axes, label="samples")
        axes.set(xlabel="class", ylabel="agent")
        axes.grid(False)
        if classes <= 20:
            axes.set_xticks(range(classes))
        if agents <= 60:
            called = [literal(name) for name in names] or list(map(str, range(agents)))
            for agent in poisoned:
                called[agent] += " poisoned"
            axes.set_yticks(range(agents), called)
        if agents <= 30 and classes <= 20:
            for agent, kind in np.argwhere(counts):
                colour = "black" if counts[agent, kind] > counts.max() / 2 else "white"
                style = {"ha": "center", "va": "center", "color": colour, "fontsize": 7}
                axes.text(kind, agent, counts[agent, kind], **style)
        return save_figure(figure, path)[0]


def network_figure(path: Path, network: Network) -> Path:
    """Save a drawing of a network."""
    with pictures() as plt:
        figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
        draw_titled(Panel(network.name, network=network), axes)
        return save_figure(figure, path)[0]


def plot_grid(
    plt: Any, rows: int, widths: Sequence[float], width: float, height: float, extra: float = 0.0
) -> tuple[Any, Any]:
    """A figure and its grid of axes, in inches; ``widths`` are multiples of ``width``."""
    size = (width * sum(widths), height * rows + extra)
    style = {"squeeze": False, "width_ratios": widths, "layout": "constrained"}
    figure, grid = plt.subplots(rows, len(widths), figsize=size, **style)
    return figure, grid


def draw_titled(panel: Panel, axes: Any, pad: float | None = None) -> None:
    """Draw a panel's network, with the panel's title above it."""
    if panel.network is not None:
        draw_network(panel.network, axes)
    axes.set_title(literal(panel.title), fontweight="bold", pad=pad)


def plot_curves(
    axes: Any, curves: Sequence[Curve], metric: str, panels: Sequence[Panel]
) -> Mapping[str, Any]:
    """Draw a metric of curves into matplotlib axes, with the range over seeds shaded.

    How a curve looks depends on all ``panels`` of the picture. Returns the lines by their labels,
    as a legend needs them.
    """
    looks = legend(panels)
    handles = {}
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    # Curves may lie on each other: lower ones are wider, and markers are at different iterations.
    widths = np.linspace(2.4, 1.4, len(curves)) if len(curves) > 1 else [1.6]
    for place, (curve, width) in enumerate(zip(curves, widths, strict=True)):
        look = looks[curve.name]
        count = len(curve.iterations)
        spacing = max(1, count // 8, min(len(curves), count))
        markers = (0, 1) if count <= FEW else (place * spacing // len(curves), spacing)
        handles[literal(look.label)] = plot_line(axes, curve, metric, look, width, markers)
        if len(curve.runs) > 1:
            shade(axes, curve.iterations, curve.limits(metric), metric, look, 0.18)
    return handles


def plot_line(
    axes: Any, curve: Curve, metric: str, look: Look, width: float, markers: tuple[int, int]
) -> Any:
    """Draw the mean over the seeds; ``markers`` are the first marked point and the step."""
    if METRICS[metric].logarithmic:
        axes.set_yscale("log")
    style = {"color": look.colour, "linestyle": look.line, "linewidth": width, "markersize": 5}
    few = len(curve.iterations) <= FEW
    style |= {"marker": look.marker or ("o" if few else None), "markevery": markers}
    [line] = axes.plot(curve.iterations, _drawable(curve.mean(metric), metric), **style)
    return line


def shade(
    axes: Any, iterations: Ints, limits: Sequence[Floats], metric: str, look: Look, alpha: float
) -> Any:
    """Shade from the lower to the upper limit of a metric, each ``[n]``."""
    low, high = (_drawable(limit, metric) for limit in limits)
    return axes.fill_between(iterations, low, high, color=look.colour, alpha=alpha, linewidth=0)


def _drawable(values: Floats, metric: str) -> Floats:
    """The values that can be drawn: a logarithmic axis has no zero."""
    return np.where(values > 0, values, np.nan) if METRICS[metric].logarithmic else values


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Save a picture; without an ending, as a PNG for screens and as a PDF for print."""
    paths = [path] if path.suffix else [path.with_suffix(end) for end in (".png", ".pdf")]
    check_picture(paths[0])
    # The layout takes longer than the drawing, so it is computed once.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for one in paths:
        _save(figure, one)
    return paths


def _save(figure: Any, path: Path) -> None:
    """Write a picture as a whole; equal pictures have equal bytes."""
    ending, content = path.suffix.lower().lstrip("."), io.BytesIO()
    dates = {"png": "Software", "pdf": "CreationDate", "svg": "Date"}
    figure.savefig(content, format=ending, metadata={dates[ending]: None})
    write_whole(path, content.getvalue())
