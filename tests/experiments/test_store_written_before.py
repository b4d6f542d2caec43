"""A store that an earlier version wrote, before there were optimisers, is read as it is."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from bezoar.experiments import RunSpec, Store, _identity, make_plan, run_key

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


def test_runs_are_read_with_their_numbers(store):
    assert {run.key for run in store.runs()} == set(STORED)
    for key, (fields, accuracies) in STORED.items():
        run = store.load(key)
        run.verify()
        assert run.spec == RunSpec.read({**FIELDS, **fields})
        assert run.iterations.tolist() == [0, 2, 4]
        np.testing.assert_array_equal(run["accuracy"], accuracies)


def test_they_keep_their_names(store, monkeypatch):
    """With the versions they were computed with, a sweep finds them and does nothing."""
    versions = {"bezoar": "0.1.0", "numpy": "2.4.6", "torch": "2.13.0+cpu"}
    monkeypatch.setattr(_identity, "versions", lambda: versions)
    specs = [RunSpec.read({**FIELDS, **fields}) for fields, _ in STORED.values()]
    assert [run_key(spec) for spec in specs] == list(STORED)
    plan = make_plan(specs, store)
    assert plan.new == 0
    other = RunSpec.read({**FIELDS, "optimizer": "momentum:beta=0.9"})
    assert run_key(other) not in STORED
