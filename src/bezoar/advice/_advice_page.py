"""Advice as a page and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bezoar._errors import BezoarError
from bezoar._numbers import count
from bezoar.advice._advise import Advice
from bezoar.advice._pilot_results import PilotResults, RankedRule
from bezoar.advice._regret import SMALL
from bezoar.advice._scenarios import ATTACKS
from bezoar.advice._study import AGENTS, SHARE
from bezoar.report import Page, Table, pictures, save_figure

#: Colours and markers of partitions in the picture.
LOOKS = (("#0072B2", "o"), ("#E69F00", "s"), ("#009E73", "^"), ("#CC79A7", "D"))

#: The rules that the picture shows, the best first.
MOST_ROWS = 12

#: How rules are ranked.
RANKED = f"Rules go by what they lost at most; within {SMALL:g} of the least, by the average"


def advice_page(advice: Advice) -> Page:
    """What is recommended, all rules in a table, and the reasons."""
    ends = dict.fromkeys((advice.poisoned[0], advice.poisoned[-1]))
    about = [
        f"{advice.network.agents} agents, {' to '.join(map(str, ends))} of them poisoned; nobody "
        "knows which."
    ]
    if advice.basis == "study":
        about.append(
            f"From a study of other networks, with {AGENTS[0]} to {AGENTS[1]} agents, {SHARE:.0%} "
            "of them poisoned; nothing was tried on this one. Accuracies are means over the "
            f"regular agents' own models. {RANKED}."
        )
    elif advice.pilots is not None:
        scenarios = advice.pilots.scenarios
        studied = all(scenario.attack in ATTACKS["labels"] for scenario in scenarios)
        about.append(
            f"Tried in {count(len(scenarios), 'scenario')}, for {advice.pilots.iterations} "
            "iterations with a small part of the data. Accuracies are means over the regular "
            f"agents' own models. {RANKED}"
            f"{', here and in the study of other networks' if studied else ''}."
        )
    return Page(
        name="advice",
        title=f"Recommended: {advice.recommended}",
        caption=" ".join(about),
        tables=(_ranking(advice),) if advice.ranking else (),
    )


def _ranking(advice: Advice) -> Table:
    times, one = ("cases", "case") if advice.basis == "study" else ("tried", "scenario")
    columns = ("rule", "at most", "average", "accuracy", "at least", times)
    values = ("regret_worst", "regret_mean", "accuracy_mean", "accuracy_worst")
    rows = []
    for rule in advice.ranking:
        numbers = (f"{getattr(rule, value):.3f}" for value in values)
        rows.append((str(rule.aggregator), *numbers, str(rule.scenarios)))
    return Table.of(f"What each rule lost against the best rule of a {one}", columns, rows)


def advice_figure(path: Path, advice: Advice) -> list[Path]:
    """Save a picture of what each rule lost: in each scenario of the pilots, or in the study.

    If the path has no ending, a PNG and a PDF are written.
    """
    if advice.basis == "theory":
        raise BezoarError("plot: the theory alone has no losses to draw; give a larger budget")
    shown = advice.ranking[:MOST_ROWS]
    with pictures() as plt:
        figure, axes = plt.subplots(figsize=(7.5, 1.4 + 0.38 * len(shown)), layout="constrained")
        for row, rule in enumerate(shown):
            axes.plot([0, rule.regret_worst], [row, row], color="#BBBBBB", zorder=1)
            axes.plot(rule.regret_mean, row, "|", color="black", markersize=16, markeredgewidth=2)
        axes.set_yticks(range(len(shown)), [str(rule.aggregator) for rule in shown])
        axes.invert_yaxis()
        axes.set_xlim(left=-0.01)
        # Names of rules leave little room, and a text on the right can begin under them.
        where = "case of the study" if advice.pilots is None else "scenario"
        lost = f"accuracy lost against the best rule of a {where}"
        axes.set_xlabel(f"{lost}\n(line: at most, tick: on average)", loc="right")
        axes.set_title(f"Recommended: {advice.recommended}", loc="left", fontweight="bold")
        if advice.pilots is not None:
            _draw_scenarios(axes, advice.pilots, shown)
            figure.legend(loc="outside lower center", ncols=len(LOOKS))
        return save_figure(figure, path)


def _draw_scenarios(axes: Any, found: PilotResults, shown: Sequence[RankedRule]) -> None:
    """A mark for what each rule lost in each scenario."""
    partitions = list(dict.fromkeys(scenario.partition for scenario in found.scenarios))
    held = np.array([partitions.index(scenario.partition) for scenario in found.scenarios])
    spread = np.linspace(-0.25, 0.25, len(partitions)) if len(partitions) > 1 else [0.0]
    for row, rule in enumerate(shown):
        regret = found.of(found.regret, rule.aggregator)
        for number, (colour, marker) in zip(range(len(partitions)), LOOKS, strict=False):
            lost = regret[held == number]
            style: dict[str, Any] = {"color": colour, "marker": marker, "s": 22, "alpha": 0.75}
            label = partitions[number] if row == 0 else None
            axes.scatter(lost, np.full(len(lost), row + spread[number]), label=label, **style)
