"""Sweeps in one process: what they plan, and what they do when something goes wrong."""

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sweep_server import some_digits

from bezoar import BezoarError, aggregators, attacks, data, networks, training
from bezoar.experiments import (
    Failure,
    Store,
    StoredRun,
    StoreError,
    Watch,
    _groups,
    _stored_run,
    _sweep,
    expand,
    plan_sweep,
    run_all,
    run_key,
    sweep,
)
from bezoar.training import _checkpoint

FIELDS = {
    "dataset": "some_digits",
    "iterations": 6,
    "every": 2,
    "metrics": ["accuracy", "consensus_error"],
    "partition": "by_class",
}

OFFICE = Path(__file__).parents[2] / "examples" / "office.graphml"


@pytest.fixture(scope="module")
def digits():
    return some_digits(20)


@pytest.fixture(autouse=True)
def quick(digits, monkeypatch):
    """A dataset that trains in milliseconds, and checkpoints as often as is asked for."""
    monkeypatch.setitem(data.DATASETS, "some_digits", lambda: digits)
    monkeypatch.setattr(_sweep, "WORTH", 0)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def specs(**fields):
    return expand(FIELDS | {"aggregator": ["ios", "faba", "mean"]} | fields)


class Notes(Watch):
    """Remembers everything."""

    def __init__(self):
        self.trained, self.began_at, self.failed, self.messages = [], [], [], []

    def began(self, group, iteration):
        self.trained.append(list(group.keys))
        self.began_at.append(iteration)

    def ended(self, group, failed):
        self.failed.append(failed)

    def said(self, message):
        self.messages.append(message)


def contents(store):
    """Every file of the finished runs that can be reproduced."""
    files = sorted(store.runs_folder.glob("*/*"))
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in files
        if path.name != "provenance.json"
    }


@pytest.fixture
def expected(tmp_path):
    """What the store of an undisturbed sweep contains."""

    def make(wanted):
        other = Store(tmp_path / "expected")
        assert not sweep(wanted, other, workers=1).failures
        return contents(other)

    return make


def test_every_run_is_in_the_store_as_if_trained_without_one(store):
    wanted = [*specs(), *specs(network="ring:agents=5", seed=3), specs()[1]]
    swept = sweep(wanted, store, workers=1)
    assert [run.spec for run in swept.runs] == wanted
    assert len(store.finished_keys()) == 6
    histories = run_all(specs(), workers=2)
    for run, history in zip(swept.runs, histories, strict=False):
        assert run.iterations.tolist() == history.iterations.tolist() == [0, 2, 4, 6]
        for name in run.metrics:
            assert run[name].tobytes() == history[name].tobytes()
    others = swept.runs[0].provenance["trained_with"]
    assert others == [run_key(spec) for spec in specs()[1:]]


def test_nothing_is_computed_twice(store):
    sweep(specs()[:2], store, workers=1)
    notes = Notes()
    swept = sweep(specs(), store, watch=notes, workers=1)
    assert notes.trained == [[run_key(specs()[2])]]
    assert (len(swept.plan.finished), swept.plan.new) == (2, 1)
    notes = Notes()
    assert len(sweep(specs(), store, watch=notes).finished) == 3
    assert notes.trained == []


def test_a_plan_tells_what_there_is_to_do_and_writes_nothing(store):
    impossible = specs(network="line", poisoned=[[3, 4, 5]], aggregator="faba")
    plan = plan_sweep([*specs(), *specs(seed=1), *impossible], store)
    assert [len(group) for group in plan.groups] == [3, 3]
    assert plan.new == 6
    assert [failure.spec for failure in plan.refused] == impossible
    assert plan.seconds(workers=1) > 0
    assert not store.path.exists()
    nothing = plan_sweep([], store)
    assert (nothing.new, nothing.seconds()) == (0, 0.0)


def test_the_plan_does_not_depend_on_what_is_finished(store, monkeypatch):
    """Otherwise a sweep that was stopped would group the rest in another way."""
    monkeypatch.setattr(_sweep.train_group.__globals__["plan"], "__defaults__", (None, 2))
    wanted = specs(aggregator=["ios", "faba", "mean", "median"])
    keys = [run_key(spec) for spec in wanted]
    assert [list(group) for group in plan_sweep(wanted, store).groups] == [keys[:2], keys[2:]]
    sweep(wanted[:1], store, workers=1)
    assert [list(group) for group in plan_sweep(wanted, store).groups] == [keys[1:2], keys[2:]]


def test_the_operations_of_a_training(digits):
    problem = training.Problem(digits, None, iterations=10, every=5, metrics=(), dtype="float32")
    one_step = 4 * 200 * 800 * 10 * 3  # samples, width, classes, runs
    assert training.operations(problem, runs=3, agents=10) == 10 * one_step
    every = {"metrics": tuple(training.METRICS), "dtype": "float64"}
    measured = training.Problem(digits, None, iterations=10, every=5, **every)
    one_test = 2 * 100 * 800 * 10 * 3
    total = 10 * one_step + 3 * (one_step + 11 * one_test)
    assert training.operations(measured, runs=3, agents=10) == 2 * total


def test_what_cannot_be_is_reported_and_the_others_are_done(store):
    bad = [
        *specs(aggregator="faba", network="line", poisoned=[[3, 4, 5]]),
        *specs(aggregator="ios", network="ring:agents=300"),  # more agents than samples
        *specs(aggregator="ios", network="ring:agents=40", partition="dirichlet:alpha=0.01"),
        *specs(aggregator="ios", attack="targeted:target=11"),
        *specs(aggregator="ios", network="two_castle:agents=7"),
        *specs(aggregator="ios", network="from_file:path=nowhere.graphml"),
        *specs(aggregator="ios", device="abacus"),
        *specs(aggregator="ios", poisoned=[[12]]),
    ]
    good = specs()
    swept = sweep([*bad, *good], store, workers=1)
    assert [failure.spec for failure in swept.failures] == bad
    assert [run.spec for run in swept.finished] == good
    assert swept.runs[: len(bad)] == swept.failures
    reasons = [failure.reason for failure in swept.failures]
    for reason, part in zip(
        reasons,
        [
            "aggregator faba: impossible at agent 4",
            "partition by_class: 200 samples are too few for 300 agents",
            "partition dirichlet: in 100 draws",
            "attack targeted: target 11 is not a class",
            "agents: two castles need an even number",
            "cannot read nowhere.graphml",
            "device: 'abacus' cannot be used here",
            "poisoned: agent 12 is not in the network",
        ],
        strict=True,
    ):
        assert part in reason


@pytest.fixture
def fragile(monkeypatch):
    """A rule that fails in its third exchange, with the error it is given."""

    def make(error):
        class Fragile(aggregators.WeightedAggregator):
            name = "fragile"
            label = "Fragile"
            exchanges = 0

            def weights(self, neighbourhood):
                Fragile.exchanges += 1
                if Fragile.exchanges % 3 == 0:
                    raise error
                return aggregators.create("mean").weights(neighbourhood)

        monkeypatch.setitem(aggregators.AGGREGATORS, "fragile", Fragile)
        return Fragile

    return make


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("it broke\n in two lines"), "RuntimeError: it broke in two lines"),
        (MemoryError(), "MemoryError: no more is known"),
        (BezoarError("field: found, allowed"), "field: found, allowed"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
)
def test_a_run_that_fails_does_not_stop_the_others(store, fragile, error, reason):
    fragile(error)
    wanted = specs(aggregator=["ios", "fragile", "mean"])
    notes = Notes()
    swept = sweep(wanted, store, watch=notes, workers=1)
    assert swept.failures == [Failure(wanted[1], reason)]
    assert [run.spec for run in swept.finished] == [wanted[0], wanted[2]]
    assert [len(keys) for keys in notes.trained] == [3, 1, 1, 1]
    assert notes.messages == ["3 runs failed together; trying each alone"]
    assert notes.failed == [True, False, True, False]
    assert list(store.groups_folder.iterdir()) == []


def test_runs_that_failed_together_are_not_tried_together_again(store, fragile):
    fragile(RuntimeError("no"))
    wanted = specs(aggregator=["ios", "fragile", "mean"])

    class Impatient(Notes):
        def began(self, group, iteration):
            super().began(group, iteration)
            if len(self.trained) == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(wanted, store, watch=Impatient(), workers=1)
    assert len(store.finished_keys()) == 1
    notes = Notes()
    swept = sweep(wanted, store, watch=notes, workers=1)
    assert [len(keys) for keys in notes.trained] == [1, 1]
    assert [failure.reason for failure in swept.failures] == ["RuntimeError: no"]


def test_a_run_that_diverges_is_a_result(store):
    wanted = specs(schedule="constant:scale=1e38", aggregator="mean")
    [run] = sweep(wanted, store, workers=1).runs
    assert isinstance(run, StoredRun)
    assert run.diverged


def test_no_iterations(store):
    [run] = sweep(specs(aggregator="mean", iterations=0), store, workers=1).runs
    assert run.iterations.tolist() == [0]


class InterruptedWatch(Notes):
    """Ctrl-C after an iteration."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def advanced(self, group, iteration, metrics):
        if iteration == self.at:
            raise KeyboardInterrupt


def test_interrupted_it_goes_on_from_its_last_checkpoint(store, expected):
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, 1, InterruptedWatch(3), checkpoint_seconds=0)
    notes = Notes()
    swept = sweep(specs(), store, 1, notes, checkpoint_seconds=0)
    assert notes.began_at == [3]
    assert contents(store) == expected(specs())
    assert swept.runs[0].provenance["resumed_after"] == 3
    assert list(store.groups_folder.iterdir()) == []


def test_an_interrupted_group_keeps_its_company(store, expected):
    """One run of it is asked for now, with another: it comes with the bits it would have had."""
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, 1, InterruptedWatch(3), checkpoint_seconds=0)
    notes = Notes()
    sweep(specs(aggregator=["median", "faba"]), store, 1, notes)
    begun, *rest = notes.trained
    assert begun == [run_key(spec) for spec in specs()]
    assert rest == [[run_key(specs(aggregator="median")[0])]]
    assert contents(store).items() >= expected(specs()).items()


def kept(monkeypatch):
    """Counts the checkpoints that are written."""
    written = []
    keep = _groups.Group.keep
    monkeypatch.setattr(
        _groups.Group,
        "keep",
        lambda group, checkpoint: written.append(checkpoint.iteration) or keep(group, checkpoint),
    )
    return written


def test_checkpoints_are_written_when_they_are_worth_it(store, tmp_path, monkeypatch):
    written = kept(monkeypatch)
    sweep(specs(), store, 1, checkpoint_seconds=1000)
    assert written == [6]
    written.clear()
    sweep(specs(), Store(tmp_path / "second"), 1, checkpoint_seconds=0)
    assert written == [1, 2, 3, 4, 5, 6]
    written.clear()
    monkeypatch.setattr(_sweep, "WORTH", 10**9)
    sweep(specs(), Store(tmp_path / "third"), 1, checkpoint_seconds=0)
    assert written == [1, 6]


def damage(path, whole):
    path.write_bytes(whole[: len(whole) // 2])


def other_training(path, whole):
    digits = data.load("some_digits")
    partition = data.partition("iid")(digits.train_labels, 10, 10, np.random.default_rng(0))
    problem = training.Problem(digits, partition, 6, 2, ("accuracy",))
    run = training.Run(networks.fan(), aggregators.create("mean"), attacks.create("label_flip"))
    with training.Workers(1) as pool:
        training.Engine(problem, [run], pool).train(keep=lambda checkpoint: checkpoint.save(path))


@pytest.mark.parametrize(
    ("spoil", "message"), [(damage, "is damaged"), (other_training, "made in another training")]
)
def test_a_checkpoint_that_cannot_be_used_is_left_aside(store, expected, spoil, message):
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, 1, InterruptedWatch(3), checkpoint_seconds=0)
    [path] = store.groups_folder.glob(f"*/{_groups.CHECKPOINT_FILE}")
    spoil(path, path.read_bytes())
    notes = Notes()
    sweep(specs(), store, 1, notes, checkpoint_seconds=0)
    [said] = notes.messages
    assert message in said
    assert said.endswith("its 3 runs start over")
    assert notes.began_at[-1] == 0
    assert contents(store) == expected(specs())


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def fails_at(monkeypatch, module, name, call):
    """Let a function fail from one of its calls on, as with a full disk."""
    original, calls = getattr(module, name), []

    def failing(*given):
        calls.append(given)
        return full_disk() if len(calls) >= call else original(*given)

    monkeypatch.setattr(module, name, failing)


@pytest.mark.parametrize(
    ("module", "name", "call", "finished"),
    [
        (_checkpoint, "write_whole", 3, 0),  # in the third checkpoint
        (_groups, "write_whole", 1, 0),  # when the group is begun
        (_stored_run, "write_synced", 2, 0),  # while the first run is saved
        (_stored_run, "write_synced", 5, 1),  # and the second
    ],
)
def test_a_full_disk_stops_the_sweep_and_loses_nothing(
    store, expected, monkeypatch, module, name, call, finished
):
    wanted = specs()
    with monkeypatch.context() as patch:
        fails_at(patch, module, name, call)
        with pytest.raises(StoreError, match=r"No space left on device; free some space there"):
            sweep(wanted, store, 1, checkpoint_seconds=0)
    assert len(store.finished_keys()) == finished
    for run in store.runs():
        run.verify()
    notes = Notes()
    sweep(wanted, store, 1, notes)
    assert notes.messages == []  # what was kept is whole
    assert contents(store) == expected(wanted)
    assert list(store.staging_folder.iterdir()) == list(store.groups_folder.iterdir()) == []


def test_a_store_that_can_only_be_read(store, monkeypatch):
    sweep(specs()[:2], store, workers=1)

    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    for module, name in ((_groups, "write_whole"), (_stored_run, "write_synced")):
        monkeypatch.setattr(module, name, read_only)
    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(StoreError, match="Read-only file system; choose a store that can be writ"):
        sweep(specs(), store, workers=1)
    assert len(sweep(specs()[:2], store, workers=1).finished) == 2  # nothing to write


def test_a_truncated_run_is_set_aside_and_computed_again(store, expected):
    wanted = specs()
    sweep(wanted, store, workers=1)
    path = store.runs_folder / run_key(wanted[1]) / "metrics.parquet"
    path.write_bytes(path.read_bytes()[:100])
    assert plan_sweep(wanted, store).broken == {run_key(wanted[1])}
    notes = Notes()
    swept = sweep(wanted, store, 1, notes)
    assert notes.trained == [[run_key(wanted[1])]]
    assert f"run {run_key(wanted[1])} was damaged: set aside in" in notes.messages[0]
    swept.runs[1].verify()
    left = {path: content for path, content in contents(store).items() if "parquet" not in path}
    assert left.keys() <= expected(wanted).keys()


def test_a_network_file_that_is_changed_in_training_is_not_taken_for_the_new_one(store, tmp_path):
    path = tmp_path / "network.graphml"
    shutil.copy(OFFICE, path)
    wanted = specs(network=f"from_file:path={path}", aggregator=["mean", "ios"], poisoned=[[2]])

    class Editor(Notes):
        def advanced(self, group, iteration, metrics):
            path.write_bytes(path.read_bytes() + b"\n")

    swept = sweep(wanted, store, 1, Editor())
    assert {failure.reason for failure in swept.failures} == {
        "network: its file was changed while the run was trained"
    }
    assert store.finished_keys() == []
    assert len(sweep(wanted, store, 1).finished) == 2


def test_two_names_of_one_network_file(store, tmp_path):
    paths = [shutil.copy(OFFICE, tmp_path / name) for name in ("a.graphml", "b.graphml")]
    wanted = [
        spec
        for path in paths
        for spec in specs(network=f"from_file:path={path}", aggregator="mean", poisoned=[[2]])
    ]
    one, two = sweep(wanted, store, workers=1).runs
    assert one.key == two.key


def test_what_others_left_of_finished_groups_is_cleared(store):
    """A sweep died after its last run was saved, before it could remove the group's folder."""
    sweep(specs(), store, workers=1)
    group = _groups.Group.of(store, [(run_key(spec), spec) for spec in specs()])
    group.write()
    sweep(specs(), store, workers=1)
    assert list(store.groups_folder.iterdir()) == []


def test_groups_of_other_versions_are_left_alone(store):
    for name, content in (
        ("a", {"format": 99, "apart": False, "specs": []}),
        ("b", {"format": 1, "apart": False, "specs": [{"network": "fan"}]}),
        ("c", "nonsense"),
    ):
        folder = store.groups_folder / name
        folder.mkdir(parents=True)
        (folder / "group.json").write_text(json.dumps(content))
    (store.groups_folder / "d").mkdir()
    assert _groups.begun_groups(store) == []
    assert len(sweep(specs(), store, workers=1).finished) == 3


def test_the_same_specs_in_another_order_go_on_in_the_order_they_were_begun(store, expected):
    with pytest.raises(KeyboardInterrupt):
        sweep(specs(), store, 1, InterruptedWatch(2), checkpoint_seconds=0)
    notes = Notes()
    sweep(specs()[::-1], store, 1, notes)
    assert notes.trained == [[run_key(spec) for spec in specs()]]
    assert notes.began_at == [2]
    assert contents(store) == expected(specs())


def test_kept_models_are_the_final_ones(store):
    [run] = sweep(specs(aggregator="mean", keep_models=True), store, workers=1).runs
    [history] = run_all(specs(aggregator="mean"), workers=1)
    assert torch.equal(run.models(), history.models)


def test_a_hundred_runs_know_their_places(store):
    wanted = specs(aggregator="mean", weight_decay=[k / 100 for k in range(100)], iterations=1)
    swept = sweep(wanted, store, workers=1)
    assert [run.spec for run in swept.runs] == wanted
    assert [len(group) for group in swept.plan.groups] == [100]
