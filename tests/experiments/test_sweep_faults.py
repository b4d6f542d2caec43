"""Sweeps in which something goes wrong."""

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sweep_runs import FIELDS, Interrupted, Notes, contents, specs, sweep
from test_one_name import FILES, RULE, write_files

from bezoar import BezoarError, aggregators, experiments
from bezoar.experiments import (
    Failure,
    Store,
    StoreError,
    expand,
    make_plan,
    network_of,
    network_of_run,
    run_key,
    spec_of,
    versions,
)
from bezoar.store import _groups, _stored_run
from bezoar.training import _checkpoint

pytestmark = pytest.mark.usefixtures("quick")

OFFICE = Path(__file__).parents[2] / "examples" / "office.graphml"


@pytest.mark.parametrize("found", [None, 3])
def test_a_store_is_a_folder(found):
    with pytest.raises(BezoarError, match=f"store: expected the path of a folder, found {found}"):
        sweep([], found)
    with pytest.raises(BezoarError, match=f"store: expected the path of a folder, found {found}"):
        Store.find(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"checkpoint_seconds": "30"}, "checkpoint_seconds: expected a number .*, found '30'"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds: expected .* at least 0, found -1.0"),
        ({"workers": 0}, "workers: expected an integer of at least 1, found 0"),
    ],
)
def test_how_to_sweep_is_checked_before_anything_is_trained(store, given, message):
    with pytest.raises(BezoarError, match=message):
        experiments.sweep(specs(), store, **given)
    assert not store.path.exists()


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
    swept = sweep([*bad, *good], store)
    assert [failure.spec for failure in swept.failures] == bad
    assert [spec_of(run) for run in swept.finished] == good
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


def test_a_model_that_does_not_fit_the_data_does_not_stop_the_others(store, tmp_path):
    x, y = np.eye(6, dtype=np.float32), np.arange(6) % 3
    np.savez(tmp_path / "vectors.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    fields = {"dataset": str(tmp_path / "vectors.npz"), "network": "ring:agents=3"}
    swept = sweep(specs(**fields, partition="iid", aggregator="mean", model=["cnn", "mlp"]), store)
    [failure] = swept.failures
    assert failure.reason.startswith("image_shape: this model needs images")
    assert [run.spec["model"]["name"] for run in swept.finished] == ["mlp"]


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
    swept = sweep(wanted, store, watch=notes)
    assert swept.failures == [Failure(wanted[1], reason)]
    assert [spec_of(run) for run in swept.finished] == [wanted[0], wanted[2]]
    assert [len(keys) for keys in notes.trained] == [3, 1, 1, 1]
    assert notes.messages == ["3 runs failed together; trying each alone"]
    assert notes.failed == [True, False, True, False]
    assert list(store.groups_folder.iterdir()) == []


def test_runs_that_failed_together_are_not_tried_together_again(store, fragile):
    fragile(RuntimeError("no"))
    wanted = specs(aggregator=["ios", "fragile", "mean"])

    class Impatient(Notes):
        def began(self, keys, specs, iteration):
            super().began(keys, specs, iteration)
            if len(self.trained) == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(wanted, store, watch=Impatient())
    assert len(store.finished_keys()) == 1
    notes = Notes()
    swept = sweep(wanted, store, watch=notes)
    assert [len(keys) for keys in notes.trained] == [1, 1]
    assert [failure.reason for failure in swept.failures] == ["RuntimeError: no"]


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
            sweep(wanted, store, checkpoint_seconds=0)
    assert len(store.finished_keys()) == finished
    for run in store.runs():
        run.verify()
    notes = Notes()
    sweep(wanted, store, notes)
    assert notes.messages == []  # what was kept is whole
    assert contents(store) == expected(wanted)
    assert list(store.staging_folder.iterdir()) == list(store.groups_folder.iterdir()) == []


def test_a_store_that_can_only_be_read(store, monkeypatch):
    sweep(specs()[:2], store)

    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    for module, name in ((_groups, "write_whole"), (_stored_run, "write_synced")):
        monkeypatch.setattr(module, name, read_only)
    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(StoreError, match="Read-only file system; choose a store that can be writ"):
        sweep(specs(), store)
    assert len(sweep(specs()[:2], store).finished) == 2  # nothing to write


def test_a_truncated_run_is_set_aside_and_computed_again(store, expected):
    wanted = specs()
    sweep(wanted, store)
    path = store.runs_folder / run_key(wanted[1]) / "metrics.parquet"
    path.write_bytes(path.read_bytes()[:100])
    assert make_plan(wanted, store).broken == {run_key(wanted[1])}
    notes = Notes()
    swept = sweep(wanted, store, notes)
    assert notes.trained == [[run_key(wanted[1])]]
    assert f"run {run_key(wanted[1])} was damaged: set aside in" in notes.messages[0]
    swept.runs[1].verify()
    left = {path: content for path, content in contents(store).items() if "parquet" not in path}
    assert left.keys() <= expected(wanted).keys()


def change_files(folder):
    """Another rule, another network and other data in the files of a run."""
    (folder / "rule.py").write_text(RULE.replace("own[..., 0] = 1", "own[..., 1] = 1"))
    (folder / "net.edges").write_text("0 1\n1 2\n")
    arrays = np.load(folder / "data.npz")
    np.savez(folder / "data.npz", **{name: arrays[name][:6] for name in arrays})


@pytest.mark.parametrize("event", ["planned", "began", "advanced", "ended"])
def test_runs_whose_files_are_changed_are_not_taken_for_the_new_ones(
    store, tmp_path, expected, event
):
    """A run is what was read when it was planned: it has the name and the numbers of that."""
    write_files(tmp_path)
    fields = FIELDS | FILES | {"aggregator": ["mean", FILES["aggregator"]], "poisoned": [0]}
    wanted = expand(fields, tmp_path)
    old, network = expected(wanted), network_of(wanted[0])
    editor = Notes()
    setattr(editor, event, lambda *_, **__: change_files(tmp_path))
    swept = sweep(wanted, store, editor)
    assert contents(store) == old
    assert {network_of_run(run).fingerprint for run in swept.finished} == {network.fingerprint}
    notes = Notes()
    again = sweep(wanted, store, notes)
    assert notes.trained == [[run_key(spec) for spec in wanted]]
    assert {run.key for run in again.finished}.isdisjoint(run.key for run in swept.finished)


def test_a_group_whose_files_were_changed_after_it_was_interrupted_starts_over(
    store, tmp_path, expected
):
    write_files(tmp_path)
    fields = FIELDS | FILES | {"aggregator": ["mean", FILES["aggregator"]], "poisoned": [0]}
    wanted = expand(fields, tmp_path)

    with pytest.raises(KeyboardInterrupt):
        sweep(wanted, store, Interrupted(3), checkpoint_seconds=0)
    change_files(tmp_path)
    notes = Notes()
    sweep(wanted, store, notes)
    assert (notes.trained, notes.began_at) == ([[run_key(spec) for spec in wanted]], [0])
    assert contents(store) == expected(wanted)


def test_two_names_of_one_network_file(store, tmp_path):
    paths = [shutil.copy(OFFICE, tmp_path / name) for name in ("a.graphml", "b.graphml")]
    wanted = [
        spec
        for path in paths
        for spec in specs(network=f"from_file:path={path}", aggregator="mean", poisoned=[[2]])
    ]
    one, two = sweep(wanted, store).runs
    assert one.key == two.key


def test_what_others_left_of_finished_groups_is_cleared(store):
    """A sweep died after its last run was saved, before it could remove the group's folder."""
    sweep(specs(), store)
    keys, documents = zip(*((run_key(spec), spec.document()) for spec in specs()), strict=True)
    store.group(keys, documents, versions()).write()
    assert len(store.begun_groups()) == 1
    sweep(specs(), store)
    assert list(store.groups_folder.iterdir()) == []


def test_groups_of_other_versions_are_left_alone(store):
    for name, content in (
        ("a", {"format": 99, "apart": False, "keys": [], "specs": []}),
        ("b", {"format": 1, "apart": False, "specs": [{"network": "fan"}]}),
        ("e", {"format": 2, "apart": False, "keys": ["0"], "specs": [{"network": "fan"}]}),
        ("c", "nonsense"),
    ):
        folder = store.groups_folder / name
        folder.mkdir(parents=True)
        (folder / "group.json").write_text(json.dumps(content))
    (store.groups_folder / "d").mkdir()
    assert store.begun_groups() == []
    assert len(sweep(specs(), store).finished) == 3
