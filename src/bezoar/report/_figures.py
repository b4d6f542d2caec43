"""Pictures of runs: curves beside the networks they ran on, and who holds what."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar._files import write_whole
from bezoar.experiments import Band, Measured
from bezoar.networks import Network
from bezoar.report._networks import draw_network
from bezoar.report._style import Look, pictures
from bezoar.training import METRICS


def axis_of(metric: str) -> str:
    """What stands beside a metric's axis; of a metric that is not known here, its name."""
    return METRICS[metric].axis if metric in METRICS else metric


def is_logarithmic(metric: str) -> bool:
    """Whether a metric's axis is logarithmic."""
    return metric in METRICS and METRICS[metric].logarithmic


@dataclass(frozen=True)
class Panel:
    """A network and the curves of the runs on it.

    Attributes:
        title: what to write above it.
        network: what to draw.
        curves: measurements for each look; of a band over seeds the range is shaded.
    """

    title: str
    network: Network
    curves: Sequence[tuple[Look, Measured]]


def panels_figure(
    path: str | Path,
    panels: Sequence[Panel],
    metrics: Sequence[str] = ("accuracy",),
    subtitle: str = "",
) -> Path:
    """Save a picture with a row a panel: the network, then a plot of each metric.

    One legend serves the whole picture; the axes of a metric are shared by all panels.
    """
    path = Path(path)
    with pictures() as plt:
        _save(draw_panels(plt, panels, metrics, subtitle), path)
    return path


def draw_panels(
    plt: Any, panels: Sequence[Panel], metrics: Sequence[str], subtitle: str = ""
) -> Any:
    """The picture of :func:`panels_figure`, drawn but not saved."""
    widths = [1.05] + [1.6] * len(metrics)
    figure, grid = plt.subplots(
        len(panels),
        1 + len(metrics),
        figsize=(3.1 * sum(widths), 3.3 * len(panels) + 0.7),
        squeeze=False,
        gridspec_kw={"width_ratios": widths},
        layout="constrained",
    )
    handles: dict[str, Any] = {}
    for panel, row in zip(panels, grid, strict=True):
        for axes in row[2:]:
            axes.sharex(row[1])  # a logarithmic plot begins later: there is no zero on it
        draw_network(panel.network, row[0])
        row[0].set_title(panel.title, fontweight="bold", pad=12)
        for metric, axes in zip(metrics, row[1:], strict=True):
            handles |= plot_curves(axes, panel.curves, metric)
            axes.set_ylabel(axis_of(metric))
    for column in range(1, 1 + len(metrics)):
        _share_limits(grid[:, column])
        grid[-1, column].set_xlabel("iteration")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
    if subtitle:
        figure.suptitle(subtitle, fontsize=10)
    return figure


def holdings_figure(
    path: str | Path, holdings: NDArray[np.int64], poisoned: Sequence[int] = ()
) -> Path:
    """Save a picture of who holds what.

    Args:
        path: where to.
        holdings: ``[agents, classes]`` numbers of samples.
        poisoned: agents whose names are marked.
    """
    path = Path(path)
    agents, classes = holdings.shape
    with pictures() as plt:
        figure, axes = plt.subplots(
            figsize=(max(4.0, 0.5 * classes + 2), max(2.5, 0.32 * min(agents, 60) + 1.2)),
            layout="constrained",
        )
        image = axes.imshow(holdings, cmap="cividis", aspect="auto")
        figure.colorbar(image, ax=axes, label="samples")
        axes.set_xlabel("class")
        axes.set_ylabel("agent")
        axes.grid(False)
        if classes <= 20:
            axes.set_xticks(range(classes))
        if agents <= 60:
            names = [f"{agent} poisoned" if agent in poisoned else agent for agent in range(agents)]
            axes.set_yticks(range(agents), names)
        if agents <= 30 and classes <= 20:
            _write_numbers(axes, holdings)
        _save(figure, path)
    return path


def network_figure(path: str | Path, network: Network) -> Path:
    """Save a drawing of a network."""
    path = Path(path)
    with pictures() as plt:
        figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
        draw_network(network, axes)
        axes.set_title(network.name, fontweight="bold")
        _save(figure, path)
    return path


def plot_curves(
    axes: Any, curves: Sequence[tuple[Look, Measured]], metric: str, shade: bool = True
) -> Mapping[str, Any]:
    """Draw a metric of several runs into matplotlib axes.

    Args:
        axes: where to.
        curves: measurements for each look.
        metric: which of them.
        shade: whether to shade the range of bands over seeds.

    Returns:
        The lines by their labels.
    """
    handles = {}
    if is_logarithmic(metric):
        axes.set_yscale("log")
    # Of curves that lie on each other the lower ones are wider, and markers are set apart.
    widths = np.linspace(2.4, 1.4, len(curves)) if len(curves) > 1 else [1.6]
    for place, ((look, measured), width) in enumerate(zip(curves, widths, strict=True)):
        x, y = measured.iterations, _drawable(measured[metric], metric)
        spacing = max(1, len(x) // 8, min(len(curves), len(x)))
        [line] = axes.plot(
            x,
            y,
            color=look.colour,
            linestyle=look.line,
            marker=look.marker or None,
            markevery=(place * spacing // len(curves), spacing),
            markersize=5,
            linewidth=width,
        )
        if shade and isinstance(measured, Band) and len(measured.runs) > 1:
            low, high = (_drawable(limit, metric) for limit in measured.limits(metric))
            axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
        handles[look.label] = line
    return handles


def _drawable(values: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """A logarithmic axis has no place for zero."""
    return np.where(values > 0, values, np.nan) if is_logarithmic(metric) else values


def _share_limits(column: Any) -> None:
    low = min(axes.get_ylim()[0] for axes in column)
    high = max(axes.get_ylim()[1] for axes in column)
    for axes in column:
        axes.set_ylim(low, high)


def _write_numbers(axes: Any, holdings: NDArray[np.int64]) -> None:
    bright = holdings > holdings.max() / 2
    for (agent, kind), count in np.ndenumerate(holdings):
        if count:
            colour = "black" if bright[agent, kind] else "white"
            axes.text(kind, agent, count, ha="center", va="center", color=colour, fontsize=7)


def save_pictures(figure: Any, stem: Path) -> tuple[Path, Path]:
    """Save a picture for screens and for print: ``stem.png`` and ``stem.pdf``."""
    png, pdf = (stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "pdf"))
    # The layout takes longer than the drawing: once is enough.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for path in (png, pdf):
        _save(figure, path)
    return png, pdf


def _save(figure: Any, path: Path) -> None:
    """Write as a whole or not at all."""
    content = io.BytesIO()
    metadata = {".png": {"Software": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    figure.savefig(content, format=path.suffix.lstrip(".") or "png", metadata=metadata)
    write_whole(path, content.getvalue())
