"""The paper's figures, laid out as the paper lays them out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bezoar.experiments import Band, Measured
from bezoar.networks import Network
from bezoar.report._figures import Panel, axis_of, draw_panels, plot_curves, save_pictures
from bezoar.report._networks import draw_network
from bezoar.report._style import Look, pictures

#: The colours of ξ and A, which are no rules', and their marks.
GRADIENTS = {
    "heterogeneity": Look("heterogeneity ξ", "#0B5394", "o"),
    "disturbance": Look("disturbance A", "#B45F06", "s", "--"),
}


@dataclass(frozen=True)
class Column:
    """The runs on one partition.

    Attributes:
        title: what to write above.
        curves: measurements for each look.
    """

    title: str
    curves: Sequence[tuple[Look, Measured]]


def motivation_figure(
    stem: Path, panels: Sequence[Panel], metrics: Sequence[str], title: str
) -> tuple[Path, Path]:
    """Save Figure 1: a row a network, with its drawing and a plot of each metric.

    Returns:
        The PNG and the PDF.
    """
    with pictures() as plt:
        return save_pictures(draw_panels(plt, panels, metrics, title), stem)


def partitions_figure(
    stem: Path, title: str, network: Network, columns: Sequence[Column], note: str = ""
) -> tuple[Path, Path]:
    """Save Figure 2, 5 or 7: a column a partition, accuracy above and consensus error below.

    The network is drawn to the left, above the legend.

    Returns:
        The PNG and the PDF.
    """
    with pictures() as plt:
        figure, grid = _grid(plt, rows=2, columns=len(columns), height=6.0)
        _draw_titled(network, title, grid[0, 0])
        grid[1, 0].set_axis_off()
        handles: dict[str, Any] = {}
        for metric, row in zip(("accuracy", "consensus_error"), grid[:, 1:], strict=True):
            for column, axes in zip(columns, row, strict=True):
                handles |= plot_curves(axes, column.curves, metric)
            row[0].set_ylabel(axis_of(metric))
        for column, axes in zip(columns, grid[0, 1:], strict=True):
            axes.set_title(column.title, fontweight="bold")
        for axes in grid[1, 1:]:
            axes.set_xlabel("iteration")
        grid[1, 0].legend(handles.values(), handles.keys(), loc="center", labelspacing=0.6)
        _write_note(figure, note)
        return save_pictures(figure, stem)


def gradients_figure(
    stem: Path,
    title: str,
    network: Network,
    columns: Sequence[Column],
    shown: str,
    note: str = "",
) -> tuple[Path, Path]:
    """Save Figure 4: heterogeneity and disturbance along training, a column a partition.

    Both belong to the average model of a run. Lines are those of one rule's runs; the range of all
    rules' runs is shaded.

    Args:
        stem: where to, without an ending.
        title: what to write above the network.
        network: what to draw.
        columns: the runs on each partition.
        shown: the label of the rule whose run is drawn as a line.
        note: what to write above everything.

    Returns:
        The PNG and the PDF.
    """
    with pictures() as plt:
        figure, grid = _grid(plt, rows=1, columns=len(columns), height=3.9)
        _draw_titled(network, title, grid[0, 0])
        handles: dict[str, Any] = {}
        for column, axes in zip(columns, grid[0, 1:], strict=True):
            axes.set_title(column.title, fontweight="bold")
            axes.set_xlabel("iteration")
            for metric, look in GRADIENTS.items():
                [line] = [run for drawn, run in column.curves if drawn.label == shown]
                handles[f"{look.label}, {shown}"] = _line(axes, look, line, metric)
                handles[f"{look.label}, all rules"] = _range(axes, look, column, metric)
        grid[0, 1].set_ylabel("distance between gradients")
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles)
        )
        _write_note(figure, note)
        return save_pictures(figure, stem)


def networks_figure(stem: Path, drawn: Mapping[str, tuple[Network, str]]) -> tuple[Path, Path]:
    """Save Figure 10: networks side by side.

    Args:
        stem: where to, without an ending.
        drawn: for each title a network, and what to write below it.

    Returns:
        The PNG and the PDF.
    """
    with pictures() as plt:
        figure, row = plt.subplots(
            1, len(drawn), figsize=(3.9 * len(drawn), 3.4), layout="constrained", squeeze=False
        )
        for place, (axes, (title, (network, text))) in enumerate(
            zip(row[0], drawn.items(), strict=True)
        ):
            _draw_titled(network, f"({chr(ord('a') + place)}) {title}", axes)
            axes.text(
                0.5, 0.0, text, transform=axes.transAxes, ha="center", va="top", linespacing=1.4
            )
        return save_pictures(figure, stem)


def _grid(plt: Any, rows: int, columns: int, height: float) -> tuple[Any, Any]:
    """Plots beside a narrower column for the network; rows and columns share their axes."""
    widths = [1.0] + [1.25] * columns
    figure, grid = plt.subplots(
        rows,
        1 + columns,
        figsize=(2.75 * sum(widths), height),
        squeeze=False,
        gridspec_kw={"width_ratios": widths},
        layout="constrained",
    )
    for row in grid:
        for axes in row[2:]:
            axes.sharey(row[1])
            axes.tick_params(which="both", labelleft=False)
    for column in grid[:, 1:].T:
        for axes in column[:-1]:
            axes.sharex(column[-1])
            axes.tick_params(which="both", labelbottom=False)
    return figure, grid


def _draw_titled(network: Network, title: str, axes: Any) -> None:
    draw_network(network, axes)
    axes.set_aspect("equal", adjustable="datalim")  # so that titles are level
    axes.set_title(title, fontweight="bold")


def _line(axes: Any, look: Look, measured: Measured, metric: str) -> Any:
    return plot_curves(axes, [(look, measured)], metric, shade=False)[look.label]


def _range(axes: Any, look: Look, column: Column, metric: str) -> Any:
    """Shade from the smallest to the largest value of all rules and seeds."""
    limits = [
        measured.limits(metric) if isinstance(measured, Band) else (measured[metric],) * 2
        for _, measured in column.curves
    ]
    low, high = (np.stack(ends) for ends in zip(*limits, strict=True))
    x = column.curves[0][1].iterations
    return axes.fill_between(
        x, low.min(axis=0), high.max(axis=0), color=look.colour, alpha=0.2, linewidth=0
    )


def _write_note(figure: Any, note: str) -> None:
    if note:
        figure.suptitle(note, fontsize=10)
