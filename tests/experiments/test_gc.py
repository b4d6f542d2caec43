import json
import os
import time

import pytest
from store_runs import contents, fill, names, new_store, spec

from bezoar.experiments import _gc, _identity, run_key
from bezoar.experiments._identity import spec_document

DAY = 86400


@pytest.fixture
def store(tmp_path):
    store = new_store(tmp_path)
    fill(store, spec(), spec(seed=1))
    return store


def begin_group(store, *specs, content=None):
    folder = store.group_folder([run_key(one) for one in specs])
    folder.mkdir(parents=True)
    document = {"format": 1, "specs": [spec_document(one) for one in specs]}
    (folder / "group.json").write_text(json.dumps(document) if content is None else content)
    (folder / "checkpoint.safetensors").write_bytes(b"0123456789")
    return folder


def rest(folder, seconds):
    for path in (*folder.iterdir(), folder):
        os.utime(path, (time.time() - seconds,) * 2)


def collected(store, **options):
    """What is removed, and that a dry run tells the same and removes nothing."""
    before = contents(store.path, without=())
    told = store.gc(dry_run=True, **options)
    assert contents(store.path, without=()) == before
    removed = store.gc(**options)
    assert removed == told
    assert not any(gone.path.exists() for gone in removed)
    assert store.gc(**options) == []
    assert names(store.staging_folder) == names(store.locks_folder) == []
    return {gone.path: gone.reason for gone in removed}


def test_what_is_in_order_stays(store):
    before = contents(store.path, without=())
    assert collected(store, outdated=True) == {}
    assert contents(store.path, without=()) == before


def test_leftovers_of_a_killed_writer_go_unless_it_lives(store):
    left = store.staging_folder / "left"
    left.mkdir()
    (left / "metrics.parquet").write_bytes(b"12345")
    with _gc.Lock.take(store.lock_file("left")):
        assert store.gc() == store.gc(dry_run=True) == []
        assert left.exists()
    [told] = store.gc(dry_run=True)
    assert (told.path, told.size) == (left, 5)
    assert collected(store) == {left: "left half-written"}


def test_broken_runs_go_unless_they_are_claimed(store):
    runs = sorted(store.runs(), key=lambda run: run.spec.seed)
    for run in runs:
        (run.path / "metrics.parquet").write_bytes(b"")
    aside = store.repair(runs[0].key)
    with store.claim(runs[1].spec):
        assert [gone.path for gone in store.gc(dry_run=True)] == [aside]
    assert collected(store) == {aside: "broken, was set aside", runs[1].path: "broken"}
    assert list(store.runs()) == []


def test_a_run_that_was_repaired_meanwhile_stays(store, monkeypatch):
    """Between the look and the lock, another process has computed the broken run again."""
    run = store.load(spec())
    good = (run.path / "metrics.parquet").read_bytes()
    (run.path / "metrics.parquet").write_bytes(b"")
    take = _gc.Lock.take

    def take_late(path):
        (run.path / "metrics.parquet").write_bytes(good)
        return take(path)

    monkeypatch.setattr(_gc.Lock, "take", take_late)
    assert store.gc() == []
    store.load(spec()).verify()


def test_groups_go_when_their_runs_are_finished(store):
    done = begin_group(store, spec(), spec(seed=1))
    under_way = begin_group(store, spec(), spec(seed=2))
    with store.claim(spec(seed=1)):
        assert store.gc() == store.gc(dry_run=True) == []
    assert collected(store) == {done: "a group whose runs are finished"}
    rest(under_way, 400 * DAY)
    assert collected(store) == {}
    assert names(under_way) == ["checkpoint.safetensors", "group.json"]


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 2}', '{"specs": [{"colour": 1}]}'])
def test_groups_that_cannot_be_read_go_after_a_rest(store, content):
    group = begin_group(store, spec(seed=2), content=content)
    assert collected(store) == {}
    rest(group, 2 * DAY)
    assert collected(store) == {group: "a group that cannot be read"}


def test_other_versions_go_on_request(store, monkeypatch):
    group = begin_group(store, spec(seed=2))
    paths = {run.path for run in store.runs()}
    newer = _identity.versions() | {"torch": "99"}
    for module in (_identity, _gc):
        monkeypatch.setattr(module, "versions", lambda: newer)
    assert collected(store) == {}
    assert collected(store, outdated=True) == dict.fromkeys(paths, "of other versions")
    rest(group, 2 * DAY)
    assert collected(store) == {}
    assert collected(store, outdated=True) == {group: "a group of other versions"}


def test_locks_of_dead_processes_go(store):
    store.lock_file("dead").touch()
    with store.claim(spec(seed=5)) as alive:
        assert store.gc() == []
        assert names(store.locks_folder) == [f"{alive.key}.lock"]
