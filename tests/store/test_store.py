"""The store: what goes in comes back, under its key."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import torch
from store_runs import (
    Measured,
    contents,
    document,
    fill,
    finished,
    key,
    names,
    new_store,
    origin,
    save,
    spec,
)

from bezoar import BezoarError, Network
from bezoar.experiments import spec_of, versions
from bezoar.store import BrokenRunError, Store
from bezoar.training import History


def test_a_run_comes_back_as_it_was(store):
    wanted = document(aggregator={"name": "ios", "estimate": 2}, poisoned=[2, 5])
    models = torch.randn(10, 7, generator=torch.Generator().manual_seed(0))
    history = History(Measured().iterations, Measured().metrics, models)
    about = origin(trained_with=["a" * 32])
    assert key(wanted) not in store
    assert not store.is_finished(key(wanted))
    saved = save(store, wanted, history, about, keep_models=True)
    assert key(wanted) in store
    assert store.is_finished(key(wanted))
    for run in (saved, store.load(key(wanted)), *Store(store.path).runs()):
        assert run.key == key(wanted) == run.path.name
        assert run.spec == wanted
        assert run.versions == versions()
        assert run.iterations.tolist() == [0, 10, 20]
        assert list(run.metrics) == ["accuracy", "poison_share"]
        np.testing.assert_array_equal(run["poison_share"], history["poison_share"])
        assert torch.equal(run.models, models)
        assert run.diverged is False
        assert run.provenance == about
        run.verify()
    assert names(store.path) == ["format.json", "runs", "work"]
    assert names(store.staging_folder) == names(store.locks_folder) == []


@pytest.mark.parametrize(
    "network",
    [
        Network(nx.path_graph(4), {2}, name="mine"),
        Network(nx.path_graph(3), set(), name="Köln → Δ"),
        Network(nx.star_graph(5), {0, 3}),
        Network(nx.empty_graph(1), set()),
    ],
    ids=["path", "nobody poisoned", "star", "a single agent"],
)
def test_the_network_comes_back_as_it_was(store, network):
    run = finished(document(), network)
    for found in (store.save("a" * 32, run, origin()), store.load("a" * 32)):
        assert found.network == network
        assert found.network.name == network.name
        assert found.network.fingerprint == network.fingerprint


def test_a_spec_comes_back_as_it_was(store):
    wanted = spec(aggregator="ios:estimate=2", poisoned=[5, 2], metrics=["accuracy"])
    [run] = fill(store, wanted)
    for found in (run, store.load(run.key)):
        assert spec_of(found) == wanted
        assert spec_of(found).texts() == wanted.texts()
    assert str(spec_of(run).aggregator) == "ios:estimate=2"


def test_what_is_not_there_is_refused_by_name(store):
    [run] = fill(store, document())
    with pytest.raises(BezoarError, match="metric: 'acuracy' is not known; allowed: accuracy, "):
        run["acuracy"]
    with pytest.raises(BezoarError, match="its models were not kept; run it with keep_models"):
        _ = run.models
    other = key(document(seed=1))
    with pytest.raises(BezoarError, match=f"run: {other} is not in the store"):
        store.load(other)


@pytest.mark.parametrize("wrong", ["abc", "../" * 10 + "ab", "A" * 32, "0" * 33, "", 7])
def test_only_keys_name_folders(store, wrong):
    fill(store, document())
    before = contents(store.path, without=())
    for attempt in (
        lambda: wrong in store,
        lambda: store.is_finished(wrong),
        lambda: store.repair(wrong),
        lambda: store.save(wrong, finished(document()), origin()),
    ):
        with pytest.raises(BezoarError, match="run: expected a key of 32 hex digits, found"):
            attempt()
    assert contents(store.path, without=()) == before


def test_divergence_is_told_without_models(store):
    models = torch.tensor([[1.0, torch.nan]])
    run = save(store, document(), History(np.array([0]), {}, models))
    assert run.diverged
    assert run.metrics == {}
    assert store.load(run.key).diverged


def test_the_same_run_has_the_same_bytes(tmp_path):
    models = torch.ones(3, 4)
    wanted = document(partition={"name": "dirichlet", "alpha": 1.0})
    same = dict(reversed(wanted.items()))
    found = []
    for name, one, seconds in (("first", wanted, 1.0), ("second", same, 2.0)):
        store = Store(tmp_path / name)
        history = History(Measured().iterations, Measured().metrics, models)
        save(store, one, history, origin(seconds), keep_models=True)
        found.append(contents(store.path))
    assert found[0] == found[1]
    files = ["metrics.parquet", "models.safetensors", "network.json", "run.json"]
    assert sorted(path.rpartition("/")[2] for path in found[0]) == ["format.json", *files]


def test_measurements_are_read_when_asked_for(store):
    [saved] = fill(store, document())
    run = store.load(saved.key)
    for name in ("metrics.parquet", "provenance.json", "network.json"):
        (run.path / name).unlink()
    assert run.spec == document()
    with pytest.raises(BrokenRunError, match=r"metrics.parquet is missing"):
        run["accuracy"]
    with pytest.raises(BrokenRunError, match=r"network.json is missing"):
        _ = run.network


def test_the_first_to_finish_wins(store):
    [first] = fill(store, document())
    before = contents(store.path, without=())
    other = Measured(metrics={"accuracy": np.zeros(3)})
    again = save(store, document(), other, origin(seconds=9.0))
    assert again["accuracy"].tolist() == first["accuracy"].tolist()
    assert contents(store.path, without=()) == before


def test_runs_are_found_by_the_beginning_of_their_key(store):
    runs = fill(store, *(document(seed=seed) for seed in range(40)))
    first = runs[0].key
    assert store.load(first[:12]).spec == runs[0].spec
    twin = store.runs_folder / (first[:6] + "0" * 26)
    twin.mkdir()
    with pytest.raises(BezoarError, match=f"'{first[:4]}' is the beginning of .*; give more"):
        store.load(first[:4])
    with pytest.raises(BezoarError, match=r"no key in the store .* begins with"):
        store.load(("0" if first[0] != "0" else "1") + "0" * 20)
    for wrong in ("abc", "xyz!", "../../../etc", "", "A" * 32, first + "0", 1234):
        with pytest.raises(BezoarError, match="run: expected 4 to 32 hex digits"):
            store.load(wrong)


def test_a_store_is_found_in_its_folder_of_results(store, tmp_path):
    with pytest.raises(BezoarError, match=f"store: there is none at {tmp_path}"):
        Store.find(tmp_path)
    fill(store, document())
    assert Store.find(tmp_path).path == Store.find(store.path).path == store.path


def test_looking_into_a_store_writes_nothing(tmp_path):
    store = new_store(tmp_path)
    absent = key(document())
    assert list(store.runs()) == store.begun_groups() == []
    assert absent not in store
    assert not store.is_finished(absent)
    assert store.repair(absent) is None
    assert store.gc() == store.gc(dry_run=True) == []
    assert names(tmp_path) == []


LOOKS = """
import sys
from bezoar.store import Store
[run] = Store(sys.argv[1]).runs()
run.verify()
assert run.network.agents == 10
assert "torch" not in sys.modules
"""


def test_looking_into_a_store_needs_no_torch(store):
    fill(store, document())
    subprocess.run([sys.executable, "-c", LOOKS, store.path], check=True)
