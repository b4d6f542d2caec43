"""Which rule did best: tables with the best on top, and a sentence where runs can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np
from scipy.stats import t as student

from bezoar._arrays import Floats
from bezoar._numbers import joined
from bezoar.experiments import StoredRun, spec_of
from bezoar.report._page import Curve, Panel, Table
from bezoar.report._style import BASELINE, Look, is_baseline, legend
from bezoar.report._tables import end_text
from bezoar.training import METRICS

#: By what rules are judged: what the regular agents themselves hold at the end.
JUDGED = {"accuracy_mean": "By the mean agent", "accuracy_worst": "By the worst agent"}

#: How sure one must be that a rule is ahead of another: a two-sided 95 % interval.
CONFIDENCE = 0.975

#: A lead in accuracy of less, on average over the seeds, is none.
LEAD = 0.005

#: The share of a training, at its end, in which the best rule must lead throughout.
FINAL = 0.2

#: Rules that are named where none is the best.
NAMED = 4

#: Cells of tables at the most; with more, there is a table of the first metric only.
CELLS = 20_000


@dataclass(frozen=True)
class BestRule:
    """The best rule of a panel by one metric, with the numbers in a text.

    If the runs cannot tell which is best, it is not ``decided``: the rules are those between which
    they do not decide, the first leading.
    """

    by: str
    decided: bool
    rules: tuple[Look, ...]
    text: str


def best_rules(panels: Sequence[Panel]) -> list[tuple[str, list[BestRule]]]:
    """For each panel that compares rules its title, and the best rule by each of its metrics."""
    looks = legend(panels)
    found = [
        (panel.title, [v for metric in JUDGED if (v := _best_rule(panel, metric, looks))])
        for panel in panels
    ]
    return [(title, several) for title, several in found if several]


def _best_rule(panel: Panel, metric: str, looks: dict[str, Look]) -> BestRule | None:
    rules = {c.name: _final(c, metric) for c in panel.curves if c.rule != BASELINE}
    rules = {name: runs for name, runs in rules.items() if runs}
    seeds = sorted(set.intersection(*map(set, rules.values()))) if len(rules) > 1 else []
    if not seeds:
        return None
    last = {name: _mean(runs, seeds) for name, runs in rules.items()}
    best, *others = sorted(last, key=lambda name: -last[name])
    rivals = [name for name in others if not _leads(rules[best], rules[name], seeds)]
    baseline = next((_final(c, metric) for c in panel.curves if c.rule == BASELINE), {})
    numbers = _numbers(looks[best].label, rules[best], baseline, seeds)
    by = JUDGED[metric]
    if len(seeds) == 1:
        return BestRule(by, False, (looks[best],), f"{numbers}. One seed decides nothing.")
    if rivals:
        shown = [looks[name] for name in (best, *rivals)]
        least = f"{min(last[name] for name in rivals):.3f}" + " or more" * (len(rivals) > 1)
        close = f"{joined([look.label for look in shown[1:]])}, with {least}"
        return BestRule(
            by, False, tuple(shown[:NAMED]), f"{numbers}; {close}, cannot be told from it."
        )
    second = others[0]
    text = f"{numbers}; next is {looks[second].label} with {last[second]:.3f}."
    return BestRule(by, True, (looks[best],), text)


def is_ahead(leads: Floats, least: float) -> bool:
    """Whether seeds can carry that one rule is better than another.

    It is better by ``leads [seeds]``, with each seed on the same data. Their mean must be more
    than ``least``, and more than chance makes it (Student's t, 95 %).
    """
    if len(leads) < 2:
        return False
    chance = student.ppf(CONFIDENCE, len(leads) - 1) * leads.std(ddof=1) / np.sqrt(len(leads))
    return bool(leads.mean() > max(chance, least))


def _leads(one: Mapping[int, Floats], other: Mapping[int, Floats], seeds: Sequence[int]) -> bool:
    """Whether a rule is ahead of another at the end, and leads throughout the last part."""
    leads = np.stack([one[seed] - other[seed] for seed in seeds])
    return bool((leads.mean(0) > 0).all()) and is_ahead(leads[:, -1], LEAD)


def _numbers(
    label: str, runs: Mapping[int, Floats], baseline: Mapping[int, Floats], seeds: Sequence[int]
) -> str:
    """What a rule reached: the mean and range over the seeds, and the gap to the baseline."""
    values = [float(runs[seed][-1]) for seed in seeds]
    text = f"{label} has {_mean(runs, seeds):.3f}"
    if len(seeds) > 1:
        text += f" ({min(values):.3f} … {max(values):.3f} over {len(seeds)} seeds)"
    if both := [seed for seed in seeds if seed in baseline]:
        gap = _mean(baseline, both) - _mean(runs, both)
        text += f", {abs(gap):.3f} {'below' if gap >= 0 else 'above'} the baseline"
    return text


def _mean(runs: Mapping[int, Floats], seeds: Sequence[int]) -> float:
    """The mean of the last values over the seeds."""
    return float(np.mean([runs[seed][-1] for seed in seeds]))


def _final(curve: Curve, metric: str) -> dict[int, Floats]:
    """For each seed the values in the last part of a training; empty if some are not finite."""
    if metric not in curve.metrics or curve.diverged:
        return {}
    start = int(np.searchsorted(curve.iterations, (1 - FINAL) * curve.iterations[-1]))
    values = curve.values(metric)[:, max(0, min(start, len(curve.iterations) - 2)) :]
    seeds = (spec_of(run).seed if isinstance(run, StoredRun) else 0 for run in curve.runs)
    return dict(zip(seeds, values, strict=True)) if np.isfinite(values).all() else {}


def ranked_tables(panels: Sequence[Panel], metrics: Sequence[str]) -> dict[str, Table]:
    """For each metric the last values of all curves, the best rules first and marked.

    Very many curves have a table of the first metric only.
    """
    cells = len(panels) * len(legend(panels))
    shown = metrics if cells * len(metrics) <= CELLS else metrics[:1]
    return {metric: ranked_table(panels, metric) for metric in shown}


def ranked_table(panels: Sequence[Panel], metric: str) -> Table:
    """The last values of a metric: rules in rows, or in columns if there are more panels.

    Rules are sorted by their mean over the panels, and the best of each panel is marked, where
    more or less is better. The baseline comes last and is no rival. Under a rule's label is its
    name for the command line.
    """
    better = METRICS[metric].more_is_better
    sign = 0 if better is None else -1 if better else 1
    looks = legend(panels)
    by_name = [{curve.name: curve for curve in panel.curves} for panel in panels]
    curves = {name: [found.get(name) for found in by_name] for name in looks}
    values = {name: [sign * _last(c, metric) for c in several] for name, several in curves.items()}

    def order(name: str) -> tuple[bool, int, float]:
        """Without a value in some panel a mean tells less, so those rules follow."""
        known = [value for value in values[name] if isfinite(value)]
        return is_baseline(name), len(panels) - len(known), float(np.mean(known or [0.0]))

    names = sorted(looks, key=order)
    rows = []
    for name in names:
        look, ends = looks[name], (end_text(c, (metric,)) if c else "–" for c in curves[name])
        rows.append((look.label if is_baseline(name) else f"{look.label}\n{look.name}", *ends))
    marked = set()
    for place in range(len(panels)):
        rivals = {row: values[name][place] for row, name in enumerate(names)}
        rivals = {r: v for r, v in rivals.items() if isfinite(v) and not is_baseline(names[r])}
        if sign and len(rivals) > 1:
            marked |= {(r, place + 1) for r, v in rivals.items() if v == min(rivals.values())}
    columns = ("rule", *(panel.title for panel in panels))
    title = f"At the end: {METRICS[metric].axis}" + (", the best of each marked" if marked else "")
    table = Table.of(title, columns, rows, marked=marked)
    return table.turned() if len(panels) > len(names) else table


def _last(curve: Curve | None, metric: str) -> float:
    if curve is None or curve.diverged or metric not in curve.metrics:
        return nan
    return float(curve.mean(metric)[-1])
