import json
import os
import time

import pytest
from store_runs import contents, document, fill, key, names, new_store

from bezoar.experiments import versions
from bezoar.store import Store

DAY = 86400


@pytest.fixture
def store(tmp_path):
    store = new_store(tmp_path)
    fill(store, document(), document(seed=1))
    return store


def begin_group(store, *specs, content=None):
    group = store.group([key(one) for one in specs], specs, versions())
    group.write()
    if content is not None:
        (group.folder / "group.json").write_text(content)
    group.checkpoint_file.write_bytes(b"0123456789")
    return group


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
    assert collected(store, outdated=versions()) == {}
    assert contents(store.path, without=()) == before


def test_leftovers_of_a_killed_writer_go_unless_it_lives(store):
    left = store.staging_folder / "left"
    left.mkdir()
    (left / "metrics.parquet").write_bytes(b"12345")
    with store.lock("left"):
        assert store.gc() == store.gc(dry_run=True) == []
        assert left.exists()
    [told] = store.gc(dry_run=True)
    assert (told.path, told.size) == (left, 5)
    (store.locks_folder / "left.lock").touch()  # as a killed process leaves it
    assert collected(store) == {left: "left half-written"}


def test_broken_runs_go_unless_they_are_being_repaired(store):
    runs = sorted(store.runs(), key=lambda run: run.spec.get("seed", 0))
    for run in runs:
        (run.path / "metrics.parquet").write_bytes(b"")
    aside = store.repair(runs[0].key)
    with store.lock(f"{runs[1].key}-repair"):
        assert [gone.path for gone in store.gc(dry_run=True)] == [aside]
    assert collected(store) == {aside: "broken, was set aside", runs[1].path: "broken"}
    assert list(store.runs()) == []


def test_a_run_that_was_repaired_meanwhile_stays(store, monkeypatch):
    """Between the look and the lock, another process has computed the broken run again."""
    run = store.load(key(document()))
    good = (run.path / "metrics.parquet").read_bytes()
    (run.path / "metrics.parquet").write_bytes(b"")
    lock = Store.lock
    taken = []

    def lock_late(self, name):
        (run.path / "metrics.parquet").write_bytes(good)
        taken.append(name)
        return lock(self, name)

    monkeypatch.setattr(Store, "lock", lock_late)
    assert store.gc() == []
    assert f"{run.key}-repair" in taken
    store.load(run.key).verify()


def test_groups_go_when_their_runs_are_finished(store):
    done = begin_group(store, document(), document(seed=1))
    under_way = begin_group(store, document(), document(seed=2))
    with done.lock():
        assert store.gc() == store.gc(dry_run=True) == []
    assert collected(store) == {done.folder: "a group whose runs are finished"}
    rest(under_way.folder, 400 * DAY)
    assert collected(store, outdated=versions()) == {}
    assert names(under_way.folder) == ["checkpoint.safetensors", "group.json"]
    assert store.begun_groups() == [under_way]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"format": 1, "specs": [{"seed": 2}]}',
        '{"format": 3}',
        '{"format": 2, "apart": false, "keys": [], "specs": []}',
        json.dumps({"format": 2, "apart": False, "keys": ["a" * 32], "specs": [{}]}),
    ],
    ids=["torn", "no object", "older", "newer", "nobody", "of another folder"],
)
def test_groups_that_cannot_be_read_go_after_a_rest(store, content):
    group = begin_group(store, document(seed=2), content=content)
    assert store.begun_groups() == []
    assert collected(store) == {}
    rest(group.folder, 2 * DAY)
    with group.lock():
        assert store.gc() == store.gc(dry_run=True) == []
    assert collected(store) == {group.folder: "a group that cannot be read"}


def test_other_versions_go_on_request(store):
    group = begin_group(store, document(seed=2))
    paths = {run.path for run in store.runs()}
    newer = versions() | {"torch": "99"}
    assert collected(store) == {}
    assert collected(store, outdated=newer) == dict.fromkeys(paths, "of other versions")
    rest(group.folder, 2 * DAY)
    assert collected(store) == collected(store, outdated=versions()) == {}
    assert collected(store, outdated=newer) == {group.folder: "a group of other versions"}


def test_locks_of_dead_processes_go(store):
    (store.locks_folder / "dead.lock").touch()
    with store.lock("alive"):
        assert store.gc() == []
        assert names(store.locks_folder) == ["alive.lock"]
    assert store.gc() == []
    assert names(store.locks_folder) == []


def test_links_to_elsewhere_are_not_followed(store, tmp_path):
    """What a folder of garbage links to is somebody's own."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "thesis.txt").write_text("years of work")
    left = store.staging_folder / "left"
    left.mkdir()
    (left / "link").symlink_to(own)
    (store.staging_folder / "linked").symlink_to(own)
    assert [gone.path for gone in store.gc()] == [left]
    assert (own / "thesis.txt").read_text() == "years of work"


def test_a_broken_run_that_is_a_link_goes_and_what_it_points_to_stays(store, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "run.json").write_text("broken")
    link = store.runs_folder / ("0" * 32)
    link.symlink_to(elsewhere)
    left = store.staging_folder / "left"
    left.mkdir()
    (left / "folder").symlink_to(elsewhere)
    assert collected(store) == {link: "broken", left: "left half-written"}
    assert not link.is_symlink()
    assert (elsewhere / "run.json").read_text() == "broken"
