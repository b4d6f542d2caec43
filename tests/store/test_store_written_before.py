"""A store that an earlier version wrote is read as it is.

It is from before there were optimisers, before every option was written out in specs, and before
networks were kept with their runs.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from store_runs import contents
from typer.testing import CliRunner

from bezoar import networks
from bezoar.cli._main import app
from bezoar.experiments import (
    RunSpec,
    field_text,
    long_table,
    matches,
    network_of_run,
    read_conditions,
    spec_of,
)
from bezoar.store import Store

BEFORE = Path(__file__).parent / "store_written_before"

FIELDS = {
    "partition": "by_class",
    "network": "fan",
    "iterations": 4,
    "every": 2,
    "weight_decay": 0.01,
    "metrics": [
        "accuracy",
        "accuracy_worst",
        "consensus_error",
        "disturbance",
        "poison_share",
    ],
}

#: What was stored, and the accuracies that it had.
STORED = {
    "9798c5178eeff19f74a6d675113c6e9b": (
        {"aggregator": {"name": "clipped_gossip", "threshold": 0.1}},
        [0.098, 0.5151, 0.4886],
    ),
    "9a5a9101d77aef24128dff4eb5fda11d": ({"poisoned": []}, [0.098, 0.1009, 0.1009]),
}


@pytest.fixture
def store(tmp_path):
    shutil.copytree(BEFORE, tmp_path / "store")
    return Store(tmp_path / "store")


def bezoar(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_runs_are_read_with_their_numbers(store):
    assert {run.key for run in store.runs()} == set(STORED)
    for key, (fields, accuracies) in STORED.items():
        run = store.load(key)
        run.verify()
        assert store.is_finished(key)
        found, expected = spec_of(run), RunSpec.read({**FIELDS, **fields})
        for field in RunSpec.model_fields:
            texts = [field_text(each, field) for each in (found, expected)]
            if field == "metrics":  # whose order is only that of tables
                texts = [sorted(text.split(",")) for text in texts]
            assert texts[0] == texts[1]
        assert RunSpec.read(dict(run.spec)) == expected  # it can be run again
        assert run.iterations.tolist() == [0, 2, 4]
        np.testing.assert_array_equal(run["accuracy"], accuracies)


def test_their_networks_are_those_that_their_specs_name(store):
    found = [network_of_run(store.load(key)) for key in STORED]
    assert found == [networks.fan(10, 1), networks.fan(10, 1).with_poisoned([])]


def test_they_are_selected_and_exported(store):
    clipped, clean = STORED
    for condition, expected in (
        ("aggregator=clipped_gossip:threshold=0.1", {clipped}),
        ("aggregator=weighted_mean", {clean}),
        ("poisoned=none", {clean}),
        ("optimizer=plain", {clipped, clean}),
        ("network=line", set()),
    ):
        wanted = read_conditions([condition])
        assert {run.key for run in store.runs() if matches(spec_of(run), wanted)} == expected
    table = long_table(store.runs())
    expected = [value for key in sorted(STORED) for value in STORED[key][1]]
    assert table["accuracy"].to_pylist() == expected


def test_they_are_listed_shown_and_reported(store, tmp_path):
    before = contents(store.path, without=())
    listed = json.loads(bezoar("runs", store.path, "--json"))
    assert {run["key"] for run in listed} == set(STORED)
    page = bezoar("runs", store.path)
    for key, (_, accuracies) in STORED.items():
        assert key[:8] in page
        assert f"{accuracies[-1]:.4f}" in page
        assert key in bezoar("runs", "show", key[:8], store.path)
    report = tmp_path / "report.html"
    bezoar("report", tmp_path, "--out", report)
    html = report.read_text(encoding="utf-8")
    assert all(f">{accuracies[-1]:.4f}<" in html for _, accuracies in STORED.values())
    assert contents(store.path, without=()) == before


def test_they_stay_until_other_versions_are_to_go(store):
    bezoar("runs", "gc", store.path)
    assert set(store.finished_keys()) == set(STORED)
    bezoar("runs", "gc", store.path, "--outdated")
    assert store.finished_keys() == []
