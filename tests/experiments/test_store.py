"""The store: what goes in comes back, under a key of its own."""

import numpy as np
import pytest
import torch
from store_runs import Measured, contents, fill, names, new_store, origin, spec

from bezoar import BezoarError
from bezoar.experiments import BrokenRunError, Store, _identity, run_key
from bezoar.training import History


@pytest.fixture
def store(tmp_path):
    return new_store(tmp_path)


def test_a_run_comes_back_as_it_was(store):
    wanted = spec(aggregator="ios:estimate=2", poisoned=[2, 5], keep_models=True)
    models = torch.randn(10, 7, generator=torch.Generator().manual_seed(0))
    history = History(Measured().iterations, Measured().metrics, models)
    about = origin(trained_with=["a" * 32])
    assert wanted not in store
    saved = store.save(wanted, history, about)
    assert wanted in store
    for run in (saved, store.load(wanted), store.load(run_key(wanted)), *Store(store.path).runs()):
        assert run.key == run_key(wanted) == run.path.name
        assert run.spec == wanted
        assert run.iterations.tolist() == [0, 10, 20]
        assert list(run.metrics) == ["accuracy", "poison_share"]
        np.testing.assert_array_equal(run["poison_share"], history["poison_share"])
        assert torch.equal(run.models(), models)
        assert run.diverged is False
        assert run.provenance == about
        run.verify()
    assert names(store.path) == ["format.json", "runs", "work"]
    assert names(store.staging_folder) == names(store.locks_folder) == []


def test_what_is_not_there_is_refused_by_name(store):
    [run] = fill(store, spec())
    with pytest.raises(BezoarError, match="metric: 'acuracy' is not known; allowed: accuracy, "):
        run["acuracy"]
    with pytest.raises(BezoarError, match="its models were not kept; run it with keep_models"):
        run.models()
    with pytest.raises(BezoarError, match=f"run: {run_key(spec(seed=1))} is not in the store"):
        store.load(spec(seed=1))


def test_divergence_is_told_without_models(store):
    models = torch.tensor([[1.0, torch.nan]])
    run = store.save(spec(), History(np.array([0]), {}, models), origin())
    assert run.diverged
    assert run.metrics == {}
    assert store.load(spec()).diverged


def test_the_same_run_has_the_same_bytes(tmp_path):
    models = torch.ones(3, 4)
    wanted = spec(keep_models=True, partition="dirichlet:alpha=1.0")
    same = spec(keep_models=True, partition={"alpha": 1, "name": "dirichlet"})
    found = []
    for name, one, seconds in (("first", wanted, 1.0), ("second", same, 2.0)):
        store = Store(tmp_path / name)
        history = History(Measured().iterations, Measured().metrics, models)
        store.save(one, history, origin(seconds))
        found.append(contents(store.path))
    assert found[0] == found[1]
    assert len(found[0]) == 4  # format.json, run.json, metrics.parquet, models.safetensors


def test_measurements_are_read_when_asked_for(store):
    fill(store, spec())
    run = store.load(spec())
    (run.path / "metrics.parquet").unlink()
    (run.path / "provenance.json").unlink()
    assert run.spec == spec()
    with pytest.raises(BrokenRunError, match=r"metrics.parquet is missing"):
        run["accuracy"]


def test_the_first_to_finish_wins(store):
    [first] = fill(store, spec())
    before = contents(store.path, without=())
    other = Measured(metrics={"accuracy": np.zeros(3)})
    again = store.save(spec(), other, origin(seconds=9.0))
    assert again["accuracy"].tolist() == first["accuracy"].tolist()
    assert contents(store.path, without=()) == before


def test_everything_that_matters_changes_the_key(monkeypatch, tmp_path):
    changes = {
        "dtype": "float64",
        "partition": "dirichlet:alpha=0.5",
        "network": "fan:agents=12",
        "poisoned": [],
        "attack": "label_flip:fraction=0.5",
        "aggregator": "ios",
        "schedule": "constant",
        "weight_decay": 0.1,
        "iterations": 21,
        "every": 5,
        "metrics": ["accuracy"],
        "seed": 1,
        "keep_models": True,
    }
    keys = [run_key(spec()), *(run_key(spec(**{name: v})) for name, v in changes.items())]
    for package in ("bezoar", "torch", "numpy"):
        changed = _identity.versions() | {package: "0.0.0"}
        monkeypatch.setattr(_identity, "versions", lambda changed=changed: changed)
        keys.append(run_key(spec()))
        monkeypatch.undo()
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 and int(key, 16) >= 0 for key in keys)


def test_the_key_does_not_depend_on_spelling():
    assert run_key(spec(poisoned=[5, 2])) == run_key(spec(poisoned=[2, 5]))
    assert run_key(spec(weight_decay=1)) == run_key(spec(weight_decay=1.0))
    first = spec(aggregator="ios:estimate=2,keep_own=true")
    second = spec(aggregator={"keep_own": True, "name": "ios", "estimate": 2})
    assert run_key(first) == run_key(second)


def test_of_a_network_file_the_content_counts(tmp_path):
    def key(name, text):
        path = tmp_path / name
        path.write_text(text)
        return run_key(spec(network={"name": "from_file", "path": str(path)}))

    keys = [
        key("one.edges", "0 1\n1 2\n"),
        key("two.edges", "0 1\n1 2\n"),
        key("one.edges", "0 1\n1 2\n2 0\n"),
        key("one.json", "0 1\n1 2\n"),
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    missing = spec(network={"name": "from_file", "path": "none.edges"})
    with pytest.raises(BezoarError, match=r"network file: cannot read none.edges: No such file"):
        run_key(missing)


def test_runs_are_found_by_the_beginning_of_their_key(store):
    runs = fill(store, *(spec(seed=seed) for seed in range(40)))
    first = runs[0].key
    assert store.load(first[:12]).spec == runs[0].spec
    twin = store.runs_folder / (first[:6] + "0" * 26)
    twin.mkdir()
    with pytest.raises(BezoarError, match=f"'{first[:4]}' is the beginning of .*; give more"):
        store.load(first[:4])
    with pytest.raises(BezoarError, match=r"no key in the store .* begins with"):
        store.load(("0" if first[0] != "0" else "1") + "0" * 20)
    for wrong in ("abc", "xyz!", "../../../etc", "", "A" * 32, first + "0"):
        with pytest.raises(BezoarError, match="run: expected 4 to 32 hex digits"):
            store.load(wrong)


def test_a_store_is_found_in_its_folder_of_results(store, tmp_path):
    with pytest.raises(BezoarError, match=f"store: there is none at {tmp_path}"):
        Store.find(tmp_path)
    fill(store, spec())
    assert Store.find(tmp_path).path == Store.find(store.path).path == store.path


def test_looking_into_a_store_writes_nothing(tmp_path):
    store = new_store(tmp_path)
    assert list(store.runs()) == []
    assert spec() not in store
    assert store.repair(spec()) is None
    assert store.gc() == store.gc(dry_run=True) == []
    assert names(tmp_path) == []
