"""Pictures of runs: curves beside the networks they ran on, and who has which samples."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar._files import write_whole
from bezoar.networks import Network
from bezoar.report._curves import Curve, Panel
from bezoar.report._ends import legend
from bezoar.report._networks import draw_network
from bezoar.report._style import Look, pictures
from bezoar.training import METRICS


def axis_of(metric: str) -> str:
    """The text beside a metric's axis; for an unknown metric, its name."""
    return METRICS[metric].axis if metric in METRICS else metric


def is_logarithmic(metric: str) -> bool:
    """Whether a metric's axis is logarithmic."""
    return metric in METRICS and METRICS[metric].logarithmic


def panels_figure(
    path: Path, panels: Sequence[Panel], metrics: Sequence[str] = ("accuracy",), title: str = ""
) -> list[Path]:
    """Save a picture with a row for each panel: its network, then a plot of each metric.

    One legend serves the whole picture; the axes of a metric are shared by all panels.

    Args:
        path: where to; without an ending, to a PNG and a PDF.
        panels: networks and curves.
        metrics: what to plot.
        title: what to write above everything.

    Returns:
        The files.
    """
    with pictures() as plt:
        figure, grid = plot_grid(plt, len(panels), [1.05] + [1.6] * len(metrics), 3.1, 3.3, 0.7)
        handles: dict[str, Any] = {}
        for panel, row in zip(panels, grid, strict=True):
            for axes in row[2:]:
                axes.sharex(row[1])  # a logarithmic plot begins later: there is no zero on it
            draw_titled(panel, row[0], pad=12)
            for metric, axes in zip(metrics, row[1:], strict=True):
                handles |= plot_curves(axes, panel.curves, metric, panels)
                axes.set_ylabel(axis_of(metric))
        for column in grid[:, 1:].T:
            limits = [axes.get_ylim() for axes in column]
            for axes in column:
                axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
            column[-1].set_xlabel("iteration")
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles)
        )
        if title:
            figure.suptitle(title, fontsize=10)
        return save_figure(figure, path)


def partition_figure(path: Path, counts: NDArray[np.int64], poisoned: Sequence[int] = ()) -> Path:
    """Save a picture of a partition.

    Args:
        path: where to.
        counts: ``[agents, classes]`` numbers of samples.
        poisoned: agents whose names are marked.
    """
    agents, classes = counts.shape
    with pictures() as plt:
        figure, axes = plt.subplots(
            figsize=(max(4.0, 0.5 * classes + 2), max(2.5, 0.32 * min(agents, 60) + 1.2)),
            layout="constrained",
        )
        image = axes.imshow(counts, cmap="cividis", aspect="auto")
        figure.colorbar(image, ax=axes, label="samples")
        axes.set(xlabel="class", ylabel="agent")
        axes.grid(False)
        if classes <= 20:
            axes.set_xticks(range(classes))
        if agents <= 60:
            names = [f"{agent} poisoned" if agent in poisoned else agent for agent in range(agents)]
            axes.set_yticks(range(agents), names)
        if agents <= 30 and classes <= 20:
            for (agent, kind), count in np.ndenumerate(counts):
                if count:
                    colour = "black" if count > counts.max() / 2 else "white"
                    style = {"ha": "center", "va": "center", "color": colour, "fontsize": 7}
                    axes.text(kind, agent, count, **style)
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
    """A figure with a grid of axes, in inches: widths are multiples of ``width``."""
    figure, grid = plt.subplots(
        rows,
        len(widths),
        figsize=(width * sum(widths), height * rows + extra),
        squeeze=False,
        gridspec_kw={"width_ratios": widths},
        layout="constrained",
    )
    return figure, grid


def draw_titled(panel: Panel, axes: Any, pad: float | None = None) -> None:
    """Draw a panel's network, with the panel's title above it."""
    if panel.network is not None:
        draw_network(panel.network, axes)
    axes.set_title(panel.title, fontweight="bold", pad=pad)


def plot_curves(
    axes: Any, curves: Sequence[Curve], metric: str, panels: Sequence[Panel]
) -> Mapping[str, Any]:
    """Draw a metric of several curves into matplotlib axes, with the range over seeds shaded.

    Args:
        axes: where to.
        curves: what to draw.
        metric: which metric.
        panels: all of the picture; they decide how curves look.

    Returns:
        The lines by their labels.
    """
    looks = legend(panels)
    handles = {}
    # Of curves that lie on each other the lower ones are wider, and markers are set apart.
    widths = np.linspace(2.4, 1.4, len(curves)) if len(curves) > 1 else [1.6]
    for place, (curve, width) in enumerate(zip(curves, widths, strict=True)):
        look = looks[curve.rule, curve.options]
        count = len(curve.iterations)
        spacing = max(1, count // 8, min(len(curves), count))
        markers = (place * spacing // len(curves), spacing)
        handles[look.label] = plot_line(axes, curve, metric, look, width, markers)
        if len(curve.runs) > 1:
            shade(axes, curve.iterations, curve.limits(metric), metric, look, 0.18)
    return handles


def plot_line(
    axes: Any, curve: Curve, metric: str, look: Look, width: float, markers: tuple[int, int]
) -> Any:
    """Draw the mean over the seeds; ``markers`` are the first marked point and the step."""
    if is_logarithmic(metric):
        axes.set_yscale("log")
    [line] = axes.plot(
        curve.iterations,
        _drawable(curve.mean(metric), metric),
        color=look.colour,
        linestyle=look.line,
        marker=look.marker or None,
        markevery=markers,
        markersize=5,
        linewidth=width,
    )
    return line


def shade(
    axes: Any,
    iterations: NDArray[np.int64],
    limits: Sequence[NDArray[np.float64]],
    metric: str,
    look: Look,
    alpha: float,
) -> Any:
    """Shade from the lower to the upper limit of a metric, each ``[n]``."""
    low, high = (_drawable(limit, metric) for limit in limits)
    return axes.fill_between(iterations, low, high, color=look.colour, alpha=alpha, linewidth=0)


def _drawable(values: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """The values that can be drawn: a logarithmic axis has no zero."""
    return np.where(values > 0, values, np.nan) if is_logarithmic(metric) else values


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Save a picture; without an ending, for screens as a PNG and for print as a PDF."""
    paths = [path] if path.suffix else [path.with_suffix(end) for end in (".png", ".pdf")]
    # The layout takes longer than the drawing: once is enough.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for one in paths:
        _save(figure, one)
    return paths


def _save(figure: Any, path: Path) -> None:
    """Write as a whole or not at all, the same bytes for the same picture."""
    content = io.BytesIO()
    dates = {".png": "Software", ".pdf": "CreationDate", ".svg": "Date"}
    metadata = {dates[path.suffix.lower()]: None}
    figure.savefig(content, format=path.suffix.lower().lstrip("."), metadata=metadata)
    write_whole(path, content.getvalue())
