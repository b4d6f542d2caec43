"""Which rule did best, and when runs are too few or too close to say so."""

import numpy as np
import pytest
import torch
from report_results import save

from bezoar.experiments import RunSpec, Store
from bezoar.report import Curve, Panel
from bezoar.report._best import best_rules, ranked_table, ranked_tables
from bezoar.training import History

#: Measured at 0, 10, … 100, so that the last fifth has three points.
ITERATIONS = np.arange(0, 101, 10)


@pytest.fixture
def panel(tmp_path):
    """Makes a panel of the accuracies that each rule reaches with each seed."""

    def make(ends, title="here", metrics=("accuracy_mean",), curve=None, models=0.0):
        curves, store = [], Store(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        for rule, values in ends.items():
            runs = []
            for seed, end in enumerate(values):
                name = "weighted_mean" if rule == "baseline" else rule
                fields = {"aggregator": name, "seed": seed}
                if rule == "baseline":
                    fields["poisoned"] = ()
                way = np.linspace(0.1, 1, len(ITERATIONS)) if curve is None else curve[rule]
                measured = dict.fromkeys(metrics, end * way)
                final = torch.full((2, 2), models if rule == "ios" else 0.0)
                spec = RunSpec.read(fields)
                runs.append(save(store, spec, History(ITERATIONS, measured, final)))
            curves.append(Curve.stored(runs, "baseline" if rule == "baseline" else ""))
        return Panel(title, tuple(curves))

    return make


def only(panel):
    [(title, [found])] = best_rules([panel])
    assert title == panel.title
    return found


def names(verdict):
    return [look.name for look in verdict.rules]


def test_a_rule_that_leads_by_more_than_chance_is_the_best(panel):
    ends = {"ios": [0.80, 0.84, 0.82], "faba": [0.61, 0.64, 0.60], "baseline": [0.9, 0.86, 0.88]}
    found = only(panel(ends))
    assert found.decided
    assert names(found) == ["ios"]
    assert found.text == (
        "IOS has 0.820 (0.800 … 0.840 over 3 seeds), 0.060 below the baseline; next is FABA with "
        "0.617."
    )
    below = only(panel({"ios": [0.8], "faba": [0.7], "baseline": [0.79]}))
    assert "0.010 above the baseline" in below.text


@pytest.mark.parametrize(
    ("ends", "rivals"),
    [
        ({"ios": [0.9, 0.7, 0.8], "faba": [0.6, 0.75, 0.7], "krum": [0.1] * 3}, ["ios", "faba"]),
        ({"ios": [0.904, 0.904], "faba": [0.900, 0.900]}, ["ios", "faba"]),
        ({"ios": [0.90, 0.90, 0.90], "faba": [0.89, 0.60, 0.88]}, ["ios", "faba"]),
        ({"ios": [0.8], "faba": [0.2]}, ["ios"]),
    ],
    ids=["seeds disagree", "too close", "by chance", "one seed"],
)
def test_runs_that_cannot_carry_a_verdict_get_none(panel, ends, rivals):
    found = only(panel(ends))
    assert not found.decided
    assert names(found) == rivals
    reason = "One seed decides nothing" if len(rivals) == 1 else "FABA, with 0"
    assert reason in found.text


def test_a_rule_that_has_just_taken_the_lead_is_not_the_best(panel):
    late = np.linspace(0.1, 1, len(ITERATIONS))
    steady = np.full(len(ITERATIONS), 0.95)
    ends = {"ios": [0.8, 0.8], "faba": [0.8, 0.8]}
    assert not only(panel(ends, curve={"ios": late, "faba": steady})).decided
    assert only(panel(ends, curve={"ios": late, "faba": 0.5 * steady})).decided


def test_without_a_second_rule_or_what_agents_hold_there_is_no_verdict(panel):
    assert best_rules([panel({"ios": [0.8, 0.8], "baseline": [0.9, 0.9]})]) == []
    assert best_rules([panel({"ios": [0.8], "faba": [0.7]}, metrics=("accuracy",))]) == []
    assert best_rules([]) == []


def test_a_run_that_diverged_is_no_rival(panel):
    found = only(panel({"ios": [0.9, 0.9], "faba": [0.8, 0.8], "krum": [0.7, 0.7]}, models=np.inf))
    assert names(found) == ["faba"]


def test_tables_have_the_best_on_top_and_marked(panel):
    one = panel({"ios": [0.5], "faba": [0.9], "baseline": [1.0]}, "one", ("accuracy_mean",))
    table = ranked_table([one], "accuracy_mean")
    assert [row[0] for row in table.rows] == ["FABA\nfaba", "IOS\nios", "Baseline"]
    assert table.marked == {(0, 1)}


def test_less_is_better_for_some_metrics_and_neither_for_others(panel):
    ends = {"ios": [0.5, 0.5], "faba": [0.9, 0.9]}
    one = panel(ends, metrics=("consensus_error", "poison_share", "heterogeneity"))
    tables = ranked_tables([one], ["consensus_error", "heterogeneity"])
    assert [row[0] for row in tables["consensus_error"].rows] == ["IOS\nios", "FABA\nfaba"]
    assert tables["consensus_error"].marked == {(0, 1)}
    assert tables["heterogeneity"].marked == frozenset()


def test_of_many_panels_each_has_a_row(panel):
    one = panel({"ios": [0.5], "faba": [0.9]})
    table = ranked_table([Panel(title, one.curves) for title in "abc"], "accuracy_mean")
    assert table.columns == ("", "FABA\nfaba", "IOS\nios")
    assert [row[0] for row in table.rows] == ["a", "b", "c"]
    assert table.marked == {(0, 1), (1, 1), (2, 1)}
