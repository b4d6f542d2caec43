import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sweep_server import some_digits

from bezoar import BezoarError, data
from bezoar.experiments import RunSpec, _made, expand, network_of, prepare, run, run_all
from bezoar.experiments._plan import together


def runs_of(keys, sizes):
    """As much of prepared runs as deciding about their company takes."""
    return [
        SimpleNamespace(together=key, cost=SimpleNamespace(bytes=size))
        for key, size in zip(keys, sizes, strict=True)
    ]


@given(
    runs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=30),
    memory=st.integers(1, 120),
    most=st.integers(1, 40),
)
def test_a_plan_keeps_every_run_and_its_bounds(runs, memory, most):
    keys, sizes = [key for key, _ in runs], [size for _, size in runs]
    groups = together(runs_of(keys, sizes), memory, most)
    assert sorted(place for group in groups for place in group) == list(range(len(runs)))
    for group in groups:
        assert len({keys[place] for place in group}) == 1
        assert len(group) == 1 or sum(sizes[place] for place in group) <= memory
        assert len(group) <= most
    if sum(sizes) <= memory and len(runs) <= most:  # everything that can be together is
        assert len(groups) == len(set(keys))


def test_runs_may_be_given_one_after_the_other():
    fields = {"network": "ring:agents=4", "samples": 40, "iterations": [0]}
    specs = expand({**fields, "aggregator": ["mean", "local"], "metrics": [["accuracy"]]})
    assert len(run_all(iter(specs))) == 2


def test_what_is_run_is_checked():
    with pytest.raises(BezoarError, match=r"specs: expected a list of RunSpec, .* found {"):
        run_all([{"seed": 1}])


@given(count=st.integers(1, 400), most=st.integers(1, 130))
def test_what_is_too_much_for_one_group_is_split_evenly(count, most):
    runs = runs_of(["same"] * count, [1] * count)
    lengths = [len(group) for group in together(runs, 10**9, most)]
    assert len(lengths) == -(-count // most)
    assert max(lengths) - min(lengths) < len(lengths)
    assert together([]) == []


def small(**fields):
    return RunSpec.read({"iterations": 2, "every": 1, "metrics": ["accuracy"], **fields})


def test_runs_of_different_sizes_lengths_and_partitions_in_one_call():
    specs = [
        small(network="fan", aggregator="ios"),
        small(network="ring:agents=6", aggregator="faba"),
        small(network="fan", aggregator="mean", iterations=3),
        small(network="fan", aggregator="trimmed_mean", partition="by_class"),
        small(network="fan", aggregator="krum"),
    ]
    calls = []
    histories = run_all(specs, workers=1, progress=lambda *call: calls.append(call[:2]))
    assert [len(history.models) for history in histories] == [10, 6, 10, 10, 10]
    assert [history.iterations[-1] for history in histories] == [2, 2, 3, 2, 2]
    assert calls == [(done, 9) for done in range(1, 10)]  # four groups: 2 + 2 + 3 + 2 steps
    for place in (0, 4):
        alone = run(specs[place])
        assert torch.allclose(alone.models, histories[place].models, atol=1e-6)
        assert np.allclose(alone["accuracy"], histories[place]["accuracy"], atol=1e-3)


def test_the_same_bits_whatever_networks_are_still_known(monkeypatch):
    """Whether runs on one network share it as one object decides how they are computed."""
    digits = some_digits(20)
    monkeypatch.setitem(data.DATASETS, "few", lambda: digits)
    specs = [
        small(network=network, aggregator=rule, dataset="few")
        for rule in ("ios", "trimmed_mean")
        for network in ("fan", "line", "two_castle")
    ]
    expected = run_all(specs, workers=1)
    monkeypatch.setattr(_made, "_network", _made._network.__wrapped__)
    for history, other in zip(run_all(specs, workers=1), expected, strict=True):
        assert history.models.numpy().tobytes() == other.models.numpy().tobytes()


def test_the_partition_is_that_of_the_data_that_was_read(tmp_path):
    """Also if its file is changed before the training begins."""
    path = tmp_path / "data.npz"

    def write(samples):
        x, y = np.arange(2.0 * samples).reshape(samples, 2), np.arange(samples) % 2
        np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)

    write(samples=30)
    run = prepare(small(dataset=str(path), network="ring:agents=4"))
    write(samples=8)
    assert sorted(run.partition().order) == list(range(30))
    assert sorted(prepare(run.spec).partition().order) == list(range(8))


def test_a_network_file_is_read_again_when_it_was_changed(tmp_path):
    path = tmp_path / "network.json"
    spec = small(network=f"from_file:path={path}")
    for neighbours in ([[1], [0]], [[1], [0, 2], [1]]):
        path.write_text(json.dumps({"neighbours": neighbours}))
        assert network_of(spec).agents == len(neighbours)


def test_fields_beside_a_spec_replace_its_own():
    spec = small(network="fan", aggregator="ios")
    assert len(run(spec, network="ring:agents=4").models) == 4
    assert len(run(spec).models) == 10


def test_numbers_and_arrays_of_numpy():
    history = run(
        network="fan",
        iterations=np.int64(1),
        every=np.uint8(1),
        seed=np.int32(2),
        weight_decay=np.float32(0.5),
        poisoned=np.array([3]),
        metrics=np.array(["accuracy"]),
        keep_models=np.bool_(True),
        aggregator={"name": "ios", "estimate": np.int64(1)},
    )
    assert history.iterations.tolist() == [0, 1]


def test_what_is_no_spec():
    with pytest.raises(BezoarError, match="spec: expected a RunSpec, found dict"):
        run({"network": "fan"})


@pytest.fixture(scope="module")
def history():
    return run(network="fan", iterations=2, every=1, metrics=["accuracy"], samples=100)


def test_a_data_frame_needs_pandas_which_is_asked_for(history, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BezoarError, match="'pip install pandas' installs it"):
        history.to_pandas()


def test_a_data_frame_has_every_measurement(history):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed; bezoar can do without")
    frame = history.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.name == "iteration"
    assert frame.index.tolist() == [0, 1, 2]
    assert list(frame.columns) == list(history.metrics)
    assert frame["accuracy"].tolist() == history["accuracy"].tolist()
