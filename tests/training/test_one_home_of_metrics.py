"""A metric is one object: everything else knows it from there."""

import numpy as np

from bezoar import report, run
from bezoar.experiments import sweep_schema
from bezoar.training import METRICS, Metric

OWN = Metric(
    "largest_number",
    "the largest number in a regular agent's model",
    axis="largest number",
    column="largest",
    compute=lambda found: found.flat.abs().double().amax(2).masked_fill(found.poisoned, 0).amax(1),
)


def test_a_new_metric_takes_one_object(monkeypatch):
    monkeypatch.setitem(METRICS, OWN.name, OWN)
    fields = {"network": "ring", "iterations": 2, "every": 1, "samples": 100}
    history = run(metrics=["accuracy", OWN.name], **fields)
    regular = [agent for agent in range(10) if agent != 9]
    assert list(history.metrics) == ["accuracy", OWN.name]
    assert history[OWN.name][0] == 0  # all start at zero
    np.testing.assert_allclose(history[OWN.name][-1], history.models[regular].abs().max())

    assert report.axis_of(OWN.name) == "largest number"
    panel = report.Panel("Ring", (report.Curve("weighted_mean", (history,)),))
    assert "largest" in report.panel_page("Ring", panel, "").tables[0].columns
    choices = sweep_schema()["properties"]["metrics"]["anyOf"][0]["items"]["enum"]
    assert OWN.name in choices
