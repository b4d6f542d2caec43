"""Metrics of single agents and who listened to whom: kept with the run, shown and exported."""

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest
from sweep_server import some_digits
from typer.testing import CliRunner

from bezoar import BezoarError, data
from bezoar.cli._main import app
from bezoar.experiments import RunSpec, Store, prepare, run, run_all, sweep, train
from bezoar.training import Checkpoint, Workers

FIELDS = {
    "dataset": "some_digits",
    "network": "fan",
    "iterations": 4,
    "every": 2,
    "agent_metrics": True,
    "listening": [4, 1],
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    digits = some_digits(20)
    monkeypatch.setitem(data.DATASETS, "some_digits", lambda: digits)


def test_a_stored_run_has_what_the_history_has(tmp_path):
    specs = [RunSpec.read({**FIELDS, "aggregator": rule}) for rule in ("ios", "median")]
    for stored, history in zip(sweep(specs, tmp_path).finished, run_all(specs), strict=True):
        assert stored.agents.keys() == history.agents.keys() == {"accuracy", "test_loss"}
        for name, values in history.agents.items():
            assert values.shape == (3, 10)
            np.testing.assert_array_equal(stored.agents[name], values)
        assert list(stored.listening) == list(history.listening) == [1, 4]
        for k, matrix in history.listening.items():
            np.testing.assert_array_equal(stored.listening[k].toarray(), matrix.toarray())
            np.testing.assert_allclose(matrix.sum(1), 1)
        regular = history.listening[4].toarray()[:9, 9].mean()
        assert history["poison_share"][-1] == pytest.approx(regular)


def test_they_survive_an_interruption(tmp_path):
    runs = [prepare(RunSpec.read({**FIELDS, "aggregator": "ios"}))]
    file = tmp_path / "checkpoint"

    def keep(checkpoint):
        if checkpoint.iteration == 2:
            checkpoint.save(file)

    with Workers(1) as pool:
        [whole] = train(runs, pool, keep=keep)
        [resumed] = train(runs, pool, start=Checkpoint.load(file))
    for name, values in whole.agents.items():
        assert values.tobytes() == resumed.agents[name].tobytes()
    for k, matrix in whole.listening.items():
        assert matrix.data.tobytes() == resumed.listening[k].data.tobytes()


def test_export_and_show(tmp_path):
    [stored] = sweep([RunSpec.read({**FIELDS, "aggregator": "ios"})], tmp_path / "store").finished
    for ending in (".csv", ".parquet"):
        words = ["runs", str(tmp_path / "store"), "--export", str(tmp_path / f"all{ending}")]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert f"all-agents{ending}" in result.output
    with open(tmp_path / "all-agents.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert rows[-1]["key"] == stored.key
    assert float(rows[-1]["accuracy"]) == stored.agents["accuracy"][-1, 9]
    table = pq.read_table(tmp_path / "all-listening.parquet").to_pydict()
    assert list(table) == ["key", "iteration", "agent", "heard", "weight"]
    heard = zip(*(table[name] for name in list(table)[1:]), strict=True)
    for iteration, agent, other, weight in heard:
        assert stored.listening[iteration][int(agent), int(other)] == weight
    shown = CliRunner().invoke(app, ["runs", "show", stored.key, str(tmp_path / "store")])
    assert "Every agent at the end, and whom they listened to in iteration 4" in shown.output
    assert "■ 9" in shown.output


def test_iterations_that_are_not(tmp_path):
    with pytest.raises(BezoarError, match="listening: expected iterations 1 … 4, found 5"):
        run(**{**FIELDS, "listening": [5]})
    assert Store(tmp_path).finished_keys() == []
