"""Sweeps in which something goes wrong."""

import errno
import json
import shutil
from pathlib import Path

import pytest
from sweep_runs import Notes, contents, specs

from bezoar import BezoarError, aggregators
from bezoar.experiments import Failure, StoreError, _groups, _stored_run, make_plan, run_key, sweep
from bezoar.training import _checkpoint

pytestmark = pytest.mark.usefixtures("quick")

OFFICE = Path(__file__).parents[2] / "examples" / "office.graphml"


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
    assert make_plan(wanted, store).broken == {run_key(wanted[1])}
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
