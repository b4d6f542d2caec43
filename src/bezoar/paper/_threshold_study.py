"""What the clipping threshold, which the paper does not give, does to CC and CG."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bezoar import report
from bezoar._files import write_whole
from bezoar.paper._comparisons import FIGURES, NETWORK_TITLES, Comparison, Figure
from bezoar.paper._figure_pages import data_text, judged_claims
from bezoar.paper._recipes import Scale, Variant, recipe
from bezoar.paper._texts import about, note
from bezoar.paper._trained import TrainedComparison, TrainedFigure

#: The thresholds that are compared. The authors' code has 0.03, and with the paper's larger steps
#: that is 0.1.
THRESHOLDS = (0.003, 0.006, 0.01, 0.03, 0.06, 0.1, 0.3, 1.0)
AUTHORS, SCALED = 0.03, 0.1

CLIPPING = ("centered_clipping", "clipped_gossip")
MEAN = "weighted_mean"

#: The figures whose claims are judged with the authors' threshold, too.
JUDGED = ("fig1", "fig2", "fig5", "fig7")


def _with(rule: str, threshold: float) -> str:
    return f"{rule}:threshold={threshold}"


class ThresholdStudy(Figure):
    """Thresholds by class on the paper's networks; then figures with the authors' threshold."""

    @property
    def title(self) -> str:
        """The heading: the paper has no such figure."""
        return self.heading

    def comparisons(self, variant: Variant | None = None) -> tuple[Comparison, ...]:
        """The thresholds, then the figures of :data:`JUDGED`."""
        given = variant or Variant()
        scale: Scale = "quick" if given.scale == "quick" else "paper"
        mine = replace(given, setting="paper", scale=scale)
        how = recipe("mnist", mine)
        again = replace(mine, clipping=AUTHORS)
        others = [part for name in JUDGED for part in FIGURES[name].comparisons(again)]
        return (Comparison(self, how), *others)


THRESHOLD_STUDY = ThresholdStudy(
    "threshold",
    "The clipping threshold of CC and CG",
    "",
    ("mnist",),
    NETWORK_TITLES,
    ("by_class",),
    (MEAN, *(_with(rule, threshold) for rule in CLIPPING for threshold in THRESHOLDS)),
)


def write_thresholds(folder: Path, made: TrainedFigure) -> report.Page:
    """Final accuracies against the threshold: a picture, a table, data, and what was found."""
    study, *figures = made.parts
    told = note(study)
    images = threshold_figure(folder / made.name, study, told)
    write_whole(folder / f"{made.name}.csv", data_text(replace(made, parts=[study])).encode())
    panels = study.panels(study.comparison.figure.where)
    table = report.ends_table("Test accuracy of the average model, by class", panels, ("accuracy",))
    found = answer(study)
    alt = "A plot for each network: final accuracy against the clipping threshold of CC and CG, "
    alt += f"with lines for the weighted mean and the baseline. {' '.join(found)}"
    sentences = [f"{about(study.recipe)}, by class; {made.figure.poison}.", *found]
    return report.Page(
        name=made.name,
        title=made.figure.title,
        caption=" ".join([*sentences, *([f"{told}."] if told else [])]),
        command=made.command,
        images=tuple(report.Image(file=path.name, alt=alt) for path in images),
        data=(f"{made.name}.csv",),
        tables=(table,),
        claims=tuple(
            claim
            for name, part in zip(JUDGED, figures, strict=True)
            for claim in judged_claims(part, f"for Figure {name.removeprefix('fig')}", CLIPPING)
        ),
        metrics=("accuracy",),
        panels=tuple(panels),
    ).save(folder)


def _final(study: TrainedComparison, network: str, rule: str) -> float:
    return float(study.curves.finals(network, "by_class", rule)[0])


def answer(study: TrainedComparison) -> list[str]:
    """What the runs say: a sentence about all networks, then one for each."""
    sentences = []
    above = dict.fromkeys((AUTHORS, SCALED), 0)
    for network, title in study.comparison.figure.networks.items():
        mean = _final(study, network, MEAN)
        parts = []
        for rule in CLIPPING:
            ends = {each: _final(study, network, _with(rule, each)) for each in THRESHOLDS}
            low, high = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
            parts.append(
                f"{report.look(rule).label} between {ends[low]:.3f} (at {low:g}) and "
                f"{ends[high]:.3f} (at {high:g}), {ends[AUTHORS]:.3f} at {AUTHORS} and "
                f"{ends[SCALED]:.3f} at {SCALED}"
            )
            for each in above:
                above[each] += ends[each] > mean
        sentences.append(f"{title}: {'; '.join(parts)}; the weighted mean ends at {mean:.3f}.")
    cases = len(CLIPPING) * len(study.comparison.figure.networks)
    counted = ", ".join(f"{count} with the threshold {each}" for each, count in above.items())
    return [f"Of {cases} cases, these end above the weighted mean: {counted}.", *sentences]


def threshold_figure(path: Path, study: TrainedComparison, told: str) -> list[Path]:
    """Save final accuracies against the threshold, a plot for each network."""
    networks = study.comparison.figure.networks
    with report.pictures() as plt:
        figure, grid = report.plot_grid(plt, 1, [1.0] * len(networks), 4.2, 3.6)
        for (network, title), axes in zip(networks.items(), grid[0], strict=True):
            for rule in CLIPPING:
                ends = [_final(study, network, _with(rule, each)) for each in THRESHOLDS]
                _line(axes, THRESHOLDS, ends, rule)
            for rule in (MEAN, report.BASELINE):
                _line(
                    axes, (THRESHOLDS[0], THRESHOLDS[-1]), [_final(study, network, rule)] * 2, rule
                )
            axes.set(xscale="log", xlabel="clipping threshold")
            axes.set_title(title, fontweight="bold")
            if axes is not grid[0, 0]:
                axes.sharey(grid[0, 0])
        grid[0, 0].set_ylabel(report.axis_of("accuracy"))
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        if told:
            figure.suptitle(told, fontsize=10)
        return report.save_figure(figure, path)


def _line(axes: Any, where: Sequence[float], ends: Sequence[float], rule: str) -> None:
    drawn = report.look(rule)
    marker = drawn.marker if rule in CLIPPING else ""
    axes.plot(where, ends, drawn.line, color=drawn.colour, marker=marker, label=drawn.label)
