"""Pictures of the theory: the lower bound's instances, and errors along the contamination rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bezoar.report._figures import _save
from bezoar.report._networks import draw_network
from bezoar.report._style import POISONED, REGULAR, look, pictures
from bezoar.theory import LowerBound

if TYPE_CHECKING:
    from bezoar.experiments import LearningError, TopologyStudy


def lower_bound_figure(path: str | Path, instances: LowerBound) -> Path:
    """Save Figure 9: both instances of Theorem 3, with every agent's label written into it."""
    path = Path(path)
    with pictures() as plt:
        figure, row = plt.subplots(1, 2, figsize=(7.6, 4.2), layout="constrained")
        for instance, axes in enumerate(row):
            labels = {agent: str(t) for agent, t in enumerate(instances.labels[instance])}
            draw_network(instances.network, axes, labels)
            axes.set_title(f"Instance {instance + 1}", fontweight="bold")
        figure.legend(
            handles=[
                _dot(plt, REGULAR, "o", "regular agent"),
                _dot(plt, POISONED, "s", "poisoned agent"),
            ],
            loc="outside lower center",
            ncols=2,
            title="Numbers are the agents' labels",
        )
        _save(figure, path)
    return path


def _dot(plt: Any, colour: str, marker: str, label: str) -> Any:
    return plt.Line2D([], [], linestyle="", color=colour, marker=marker, markersize=9, label=label)


def topology_figure(path: str | Path, study: TopologyStudy) -> Path:
    """Save the learning errors along either contamination rate, the other one fixed.

    Marks are measured; lines are what the theory says.
    """
    path = Path(path)
    with pictures() as plt:
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(9.4, 4.3), sharey=True, layout="constrained"
        )
        fixed = study.by_delta_max[0].delta
        _plot(left, study.by_delta_max, lambda found: found.delta_max)
        left.set_xlabel("local contamination rate δ_max")
        left.set_ylabel("learning error ‖∇f(x̄)‖², worse instance")
        left.set_title(f"same δ = {fixed:.3g}, denser to sparser", fontsize=10)
        _plot(right, study.by_delta, lambda found: found.delta)
        right.set_xlabel("global contamination rate δ")
        right.set_title(
            f"same δ_max = {study.by_delta[0].delta_max:.3g}, few to many poisoned", fontsize=10
        )
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        _save(figure, path)
    return path


def _mean_error(found: LearningError) -> float:
    """The weighted mean's error, see :func:`bezoar.experiments.topology_study`."""
    return found.delta**2


def _robust_error(found: LearningError) -> float:
    """The same of a rule that follows majorities."""
    return (found.delta_max / (1 - found.delta_max)) ** 2


def _plot(
    axes: Any, errors: Sequence[LearningError], rate: Callable[[LearningError], float]
) -> None:
    rules = list(dict.fromkeys(found.rule for found in errors))
    first = [found for found in errors if found.rule == rules[0]]
    places = [rate(found) for found in first]
    for theory, style, colour, label in (
        (_mean_error, "-", look("weighted_mean").colour, "theory: δ²"),
        (_robust_error, "--", "#444444", "theory: (δ_max/(1−δ_max))²"),
    ):
        values = [theory(found) for found in first]
        axes.plot(places, values, style, color=colour, linewidth=1.3, label=label, zorder=1)
    robust = [rule for rule in rules if rule != "weighted_mean"]
    for rule in rules:
        drawn = look(rule)
        mine = [found for found in errors if found.rule == rule]
        # Rules that agree to the last digit lie on each other: larger marks behind smaller ones.
        size = 7.0 if rule not in robust else 15.0 - 4.0 * robust.index(rule)
        axes.plot(
            [rate(found) for found in mine],
            [found.error for found in mine],
            linestyle="",
            marker=drawn.marker,
            markersize=max(size, 5.0),
            markerfacecolor=drawn.colour,
            markeredgecolor="white",
            markeredgewidth=0.7,
            label=drawn.label,
            zorder=2 + (robust.index(rule) if rule in robust else len(rules)),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(places, [f"{place:.3g}" for place in places])
    axes.minorticks_off()
    axes.set_xlim(0.85 * np.min(places), 1.18 * np.max(places))
