"""The bars of a sweep."""

from bezoar.cli._progress import Bars
from bezoar.cli._screen import training_bars
from bezoar.experiments import RunSpec, Store, make_plan


def test_a_planned_group_may_fail_before_it_began(tmp_path, capsys):
    bars = Bars(training_bars(), 1)
    plan = make_plan([RunSpec(iterations=1)], Store(tmp_path))
    bars.planned(plan)
    bars.ended(list(plan.groups[0]), failed=True)
    assert capsys.readouterr().err.startswith("1 run: 0 already there, 1 new in 1 group")
