"""Sweeps: what they plan, and what is in the store when they are done."""

import pytest
import torch
from sweep_runs import Notes, contents, specs, sweep

from bezoar import aggregators, experiments, training
from bezoar.experiments import (
    RunSpec,
    Store,
    StoredRun,
    _plan,
    make_plan,
    network_of,
    network_of_run,
    run_all,
    run_key,
    spec_of,
)

pytestmark = pytest.mark.usefixtures("quick")


def test_every_run_is_in_the_store_as_if_trained_without_one(store):
    wanted = [*specs(), *specs(network="ring:agents=5", seed=3), specs()[1]]
    swept = sweep(wanted, store)
    assert [spec_of(run) for run in swept.runs] == wanted
    assert [network_of_run(run).fingerprint for run in swept.runs] == [
        network_of(spec).fingerprint for spec in wanted
    ]
    assert len(store.finished_keys()) == 6
    histories = run_all(specs(), workers=2)
    for run, history in zip(swept.runs, histories, strict=False):
        assert run.iterations.tolist() == history.iterations.tolist() == [0, 2, 4, 6]
        for name in run.metrics:
            assert run[name].tobytes() == history[name].tobytes()
    others = swept.runs[0].provenance["trained_with"]
    assert others == [run_key(spec) for spec in specs()[1:]]


def test_the_same_bits_whoever_executes(store, tmp_path):
    sweep(specs(), store)
    default, three = Store(tmp_path / "default"), Store(tmp_path / "three")
    experiments.sweep(specs(), default)
    experiments.sweep(specs(), str(three.path), workers=3)
    assert contents(default) == contents(three) == contents(store)


def test_nothing_is_computed_twice(store):
    sweep(specs()[:2], store)
    notes = Notes()
    swept = sweep(specs(), store, watch=notes)
    assert notes.trained == [[run_key(specs()[2])]]
    assert (len(swept.plan.finished), swept.plan.new) == (2, 1)
    notes = Notes()
    assert len(sweep(specs(), store, watch=notes).finished) == 3
    assert notes.trained == []


def test_a_plan_tells_what_there_is_to_do_and_writes_nothing(store):
    impossible = specs(network="line", poisoned=[[3, 4, 5]], aggregator="faba")
    plan = make_plan([*specs(), *specs(seed=1), *impossible], store)
    assert [len(group) for group in plan.groups] == [3, 3]
    assert plan.new == 6
    assert plan.keys == [*map(run_key, [*specs(), *specs(seed=1)]), None]
    assert [failure.spec for failure in plan.refused] == impossible
    assert plan.seconds(workers=1) > 0
    assert not store.path.exists()
    nothing = make_plan([], store)
    assert (nothing.new, nothing.seconds()) == (0, 0.0)


def test_nothing_is_trained_for_a_run_that_is_refused(store):
    class Nameless(aggregators.Mean):
        name, __module__ = "nameless", "__main__"

    start = {"name": "pretrained", "epochs": 1, "batch": 100}
    fields = {"dataset": "some_digits", "model": "mlp:width=4", "start": start}
    plan = make_plan([RunSpec.read(fields | {"aggregator": Nameless()})], store)
    assert "has no name" in plan.refused[0].reason
    assert plan.new == 0


def test_the_plan_does_not_depend_on_what_is_finished(store, monkeypatch):
    """Otherwise a sweep that was stopped would group the rest in another way."""
    monkeypatch.setattr(_plan.together, "__defaults__", (None, 2))
    wanted = specs(aggregator=["ios", "faba", "mean", "median"])
    keys = [run_key(spec) for spec in wanted]
    assert [list(group) for group in make_plan(wanted, store).groups] == [keys[:2], keys[2:]]
    sweep(wanted[:1], store)
    assert [list(group) for group in make_plan(wanted, store).groups] == [keys[1:2], keys[2:]]


def test_the_operations_of_a_training(digits):
    cost = training.SoftmaxTask.cost(digits, 10, "float32")
    one_step = 4 * 200 * 800 * 10  # samples, width, classes
    assert training.operations(cost, 10, 5, (), regular=10) == 10 * one_step
    double = training.SoftmaxTask.cost(digits, 10, "float64")
    assert double.bytes == 2 * cost.bytes
    one_test = 2 * 100 * 800 * 10
    total = 10 * one_step + 3 * (one_step + 12 * one_test)  # all agents, and two averages
    assert training.operations(double, 10, 5, tuple(training.METRICS), regular=10) == 2 * total


def test_a_run_that_diverges_is_a_result(store):
    wanted = specs(schedule="constant:scale=1e38", aggregator="mean")
    [run] = sweep(wanted, store).runs
    assert isinstance(run, StoredRun)
    assert run.diverged


def test_no_iterations(store):
    [run] = sweep(specs(aggregator="mean", iterations=0), store).runs
    assert run.iterations.tolist() == [0]


def test_kept_models_are_the_final_ones(store):
    [run] = sweep(specs(aggregator="mean", keep_models=True), store).runs
    [history] = run_all(specs(aggregator="mean"), workers=1)
    assert torch.equal(run.models, history.models)


def test_a_hundred_runs_know_their_places(store):
    wanted = specs(aggregator="mean", weight_decay=[k / 100 for k in range(100)], iterations=1)
    swept = sweep(wanted, store)
    assert [spec_of(run) for run in swept.runs] == wanted
    assert [len(group) for group in swept.plan.groups] == [100]
