"""The paper's figures, laid out as the paper lays them out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from bezoar import report
from bezoar.networks import Network
from bezoar.paper._contamination_study import ContaminationStudy, LearningError
from bezoar.theory import LowerBound

#: The looks of ξ and A, which are no rules.
GRADIENTS = (
    report.Look("heterogeneity", "heterogeneity ξ", "#0B5394", "o"),
    report.Look("disturbance", "disturbance A", "#B45F06", "s", "--"),
)


def partitions_figure(
    path: Path,
    title: str,
    panels: Sequence[report.Panel],
    metrics: Sequence[str] = ("accuracy", "consensus_error"),
    note: str = "",
) -> list[Path]:
    """Save a column for each partition, one metric above and the other below.

    The network is drawn to the left with its title, above the legend; the note is above everything.
    Returns the PNG and the PDF; ``path`` is without an ending.
    """
    with report.pictures() as plt:
        figure, grid = _grid(plt, panels, title, note, rows=2, height=3.0)
        handles: dict[str, Any] = {}
        for metric, row in zip(metrics, grid, strict=True):
            for panel, axes in zip(panels, row[1:], strict=True):
                handles |= report.plot_curves(axes, panel.curves, metric, panels)
            row[1].set_ylabel(report.axis_of(metric))
        grid[1, 0].legend(handles.values(), handles.keys(), loc="center", labelspacing=0.6)
        return report.save_figure(figure, path)


def gradients_figure(
    path: Path, title: str, panels: Sequence[report.Panel], shown: str, note: str = ""
) -> list[Path]:
    """Save Figure 4: heterogeneity and disturbance along training, a column for each partition.

    Both belong to the average model of a run. Lines are those of the rule ``shown``; the range of
    all rules' runs is shaded. The rest is as for :func:`partitions_figure`.
    """
    with report.pictures() as plt:
        figure, grid = _grid(plt, panels, title, note, rows=1, height=3.9)
        handles: dict[str, Any] = {}
        for panel, axes in zip(panels, grid[0, 1:], strict=True):
            [line] = [curve for curve in panel.curves if curve.rule == shown]
            count = len(line.iterations)
            for drawn in GRADIENTS:
                limits = [curve.limits(drawn.name) for curve in panel.curves]
                low, high = (np.stack(ends) for ends in zip(*limits, strict=True))
                range_ = (low.min(axis=0), high.max(axis=0))
                handles[f"{drawn.label}, {report.look(shown).label}"] = report.plot_line(
                    axes, line, drawn.name, drawn, 1.6, (0, max(1, count // 8))
                )
                handles[f"{drawn.label}, all rules"] = report.shade(
                    axes, line.iterations, range_, drawn.name, drawn, 0.2
                )
        grid[0, 1].set_ylabel("distance between gradients")
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles)
        )
        return report.save_figure(figure, path)


def _grid(
    plt: Any, panels: Sequence[report.Panel], title: str, note: str, rows: int, height: float
) -> tuple[Any, Any]:
    """The network in a narrower first column, then a column for each panel with shared axes."""
    figure, grid = report.plot_grid(plt, rows, [1.0] + [1.25] * len(panels), 2.75, height)
    if note:
        figure.suptitle(fill(note, 150), fontsize=10)
    _draw(title, panels[0].network, grid[0, 0])
    for axes in grid[1:, 0]:
        axes.set_axis_off()
    for row in grid:
        for axes in row[2:]:
            axes.sharey(row[1])
            axes.tick_params(which="both", labelleft=False)
    for panel, column in zip(panels, grid[:, 1:].T, strict=True):
        column[0].set_title(panel.title, fontweight="bold")
        column[-1].set_xlabel("iteration")
        for axes in column[:-1]:
            axes.sharex(column[-1])
            axes.tick_params(which="both", labelbottom=False)
    return figure, grid


def _draw(title: str, network: Network | None, axes: Any) -> None:
    report.draw_titled(report.Panel(title, network=network), axes)
    axes.set_aspect("equal", adjustable="datalim")  # so that titles are level
    axes.set_autoscale_on(True)  # or matplotlib would warn that it adjusts the limits


def networks_figure(path: Path, drawn: Mapping[str, tuple[Network, str]]) -> list[Path]:
    """Save Figure 10: networks side by side, each with a title and a text below it."""
    with report.pictures() as plt:
        figure, grid = report.plot_grid(plt, 1, [1.0] * len(drawn), 3.9, 3.4)
        for letter, axes, (title, (network, text)) in zip(
            "abc", grid[0], drawn.items(), strict=True
        ):
            _draw(f"({letter}) {title}", network, axes)
            style = {"ha": "center", "va": "top", "linespacing": 1.4}
            axes.text(0.5, 0.0, text, transform=axes.transAxes, **style)
        return report.save_figure(figure, path)


def lower_bound_figure(path: Path, instances: LowerBound) -> list[Path]:
    """Save Figure 9: both instances of Theorem 3, with every agent's label written into it."""
    with report.pictures() as plt:
        figure, row = plt.subplots(1, 2, figsize=(7.6, 4.2), layout="constrained")
        for instance, axes in enumerate(row):
            labels = {agent: str(t) for agent, t in enumerate(instances.labels[instance])}
            report.draw_network(instances.network, axes, labels)
            axes.set_title(f"Instance {instance + 1}", fontweight="bold")
        kinds = ((report.REGULAR, "o", "regular agent"), (report.POISONED, "s", "poisoned agent"))
        figure.legend(
            handles=[
                plt.Line2D([], [], linestyle="", color=c, marker=marker, markersize=9, label=label)
                for c, marker, label in kinds
            ],
            loc="outside lower center",
            ncols=2,
            title="Numbers are the agents' labels",
        )
        figure.draw_without_rendering()  # the first layout has no room for the titles yet
        return report.save_figure(figure, path)


def contamination_figure(path: Path, study: ContaminationStudy) -> list[Path]:
    """Save the learning errors along either contamination rate, the other one fixed.

    Marks are measured; lines are what the theory says.
    """
    with report.pictures() as plt:
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(9.4, 4.3), sharey=True, layout="constrained"
        )
        _plot_errors(left, study.by_delta_max, lambda found: found.delta_max)
        delta, delta_max = study.by_delta_max[0].delta, study.by_delta[0].delta_max
        left.set_xlabel("local contamination rate δ_max")
        left.set_ylabel("learning error ‖∇f(x̄)‖², worse instance")
        left.set_title(f"same δ = {delta:.3g}, denser to sparser", fontsize=10)
        _plot_errors(right, study.by_delta, lambda found: found.delta)
        right.set_xlabel("global contamination rate δ")
        right.set_title(f"same δ_max = {delta_max:.3g}, few to many poisoned", fontsize=10)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return report.save_figure(figure, path)


def _plot_errors(
    axes: Any, errors: Sequence[LearningError], rate: Callable[[LearningError], float]
) -> None:
    rules = list(dict.fromkeys(found.rule for found in errors))
    first = [found for found in errors if found.rule == rules[0]]
    rates = [rate(found) for found in first]
    mean = [found.delta**2 for found in first]
    robust = [(found.delta_max / (1 - found.delta_max)) ** 2 for found in first]
    for values, line, colour, label in (
        (mean, "-", report.look("weighted_mean").colour, "theory: δ²"),
        (robust, "--", "#444444", "theory: (δ_max/(1−δ_max))²"),
    ):
        axes.plot(rates, values, line, color=colour, linewidth=1.3, label=label, zorder=1)
    # Rules that agree to the last digit lie on each other: larger marks behind smaller ones.
    order = [rule for rule in rules if rule != "weighted_mean"]
    sizes = {rule: max(15.0 - 4.0 * place, 5.0) for place, rule in enumerate(order)}
    for rule in rules:
        drawn = report.look(rule)
        mine = [found for found in errors if found.rule == rule]
        axes.plot(
            [rate(found) for found in mine],
            [found.error for found in mine],
            linestyle="",
            marker=drawn.marker,
            markersize=sizes.get(rule, 7.0),
            markerfacecolor=drawn.colour,
            markeredgecolor="white",
            markeredgewidth=0.7,
            label=drawn.label,
            zorder=2 + (order.index(rule) if rule in order else len(rules)),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(rates, [f"{value:.3g}" for value in rates])
    axes.minorticks_off()
    axes.set_xlim(0.85 * min(rates), 1.18 * max(rates))
