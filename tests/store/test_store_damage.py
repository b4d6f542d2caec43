"""The store when files are damaged, newer, or cannot be written."""

import errno
import json
import os
import resource
from itertools import count

import pytest
import torch
from store_runs import Measured, contents, document, fill, key, names, save

from bezoar import __version__
from bezoar._files import digest
from bezoar.experiments import spec_of, versions
from bezoar.store import BrokenRunError, Store, StoreError, UnknownFormatError
from bezoar.training import History


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def remove(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def forge(path, content=b"PAR1 not really PAR1"):
    """A file that fits its checksum and is still not what it should be."""
    run = path.parent / "run.json"
    told = json.loads(run.read_bytes())
    path.write_bytes(content)
    told["files"][path.name] = digest(content)
    run.write_text(json.dumps(told))


def alter(**changes):
    def altered(path):
        path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))

    return altered


@pytest.mark.parametrize(
    ("name", "damage", "problem"),
    [
        ("metrics.parquet", truncate, "metrics.parquet is not as it was written"),
        ("metrics.parquet", flip, "metrics.parquet is not as it was written"),
        ("metrics.parquet", empty, "metrics.parquet is not as it was written"),
        ("metrics.parquet", remove, "metrics.parquet is missing"),
        ("metrics.parquet", forge, "metrics.parquet cannot be read"),
        ("network.json", truncate, "network.json is not as it was written"),
        ("network.json", flip, "network.json is not as it was written"),
        ("network.json", remove, "network.json is missing"),
        ("models.safetensors", truncate, "models.safetensors is not as it was written"),
        ("models.safetensors", remove, "models.safetensors is missing"),
        ("run.json", truncate, "run.json is not valid JSON"),
        ("run.json", empty, "run.json is not valid JSON"),
        ("run.json", remove, "run.json is missing"),
        ("run.json", lambda path: path.write_text("[]"), "run.json is no JSON object"),
        ("run.json", alter(key="f" * 32), "run.json belongs to another run"),
        ("run.json", alter(files={}), "run.json belongs to another run"),
        ("run.json", alter(diverged="perhaps"), "run.json: diverged: "),
        ("run.json", alter(format="one"), "run.json: format: "),
        ("run.json", alter(more=1), "run.json: more: "),
        ("run.json", alter(spec=[]), "run.json: spec: "),
        ("provenance.json", truncate, "provenance.json is not valid JSON"),
        ("provenance.json", remove, "provenance.json is missing"),
    ],
)
def test_a_damaged_run_is_told_set_aside_and_can_be_computed_again(store, name, damage, problem):
    history = History(Measured().iterations, Measured().metrics, torch.ones(3, 4))
    run = save(store, document(), history, keep_models=True)
    wanted, other = run.key, fill(store, document(seed=1))[0].key
    before = contents(store.path)
    damage(run.path / name)
    with pytest.raises(BrokenRunError, match=f"run: {run.path} is broken: {problem}") as told:
        store.load(wanted).verify()
    assert "'bezoar runs gc'" in str(told.value)
    damaged = contents(run.path, without=())
    assert wanted in store  # loading changes nothing
    assert not store.is_finished(wanted)

    aside = store.repair(wanted)
    assert aside is not None
    assert aside.parent == store.path / "work" / "broken"
    assert contents(aside, without=()) == damaged
    assert wanted not in store
    assert other in store
    assert store.repair(wanted) is store.repair(other) is None

    save(store, document(), history, keep_models=True)
    assert store.is_finished(wanted)
    assert {k: v for k, v in contents(store.path).items() if "broken" not in k} == before


def test_saving_replaces_a_damaged_run(store):
    [run] = fill(store, document())
    truncate(run.path / "metrics.parquet")
    fill(store, document())
    store.load(run.key).verify()
    assert len(names(store.broken_folder)) == 1


def test_a_damaged_run_does_not_hide_the_others(store):
    runs = fill(store, *(document(seed=seed) for seed in range(3)))
    truncate(runs[1].path / "run.json")
    problems = []
    found = [run.key for run in store.runs(problems.append)]
    assert found == sorted((runs[0].key, runs[2].key))
    [problem] = problems
    assert str(runs[1].path) in str(problem)
    with pytest.raises(BrokenRunError):
        list(store.runs())


def test_other_files_among_the_runs_are_left_alone(store):
    fill(store, document())
    (store.runs_folder / ".DS_Store").write_text("")
    (store.runs_folder / "notes").mkdir()
    assert [run.spec for run in store.runs()] == [document()]


def test_a_newer_store_is_a_clear_error(store):
    fill(store, document())
    path = store.path / "format.json"
    assert json.loads(path.read_text())["format"] == 1
    path.write_text('{"format": 3}')
    with pytest.raises(UnknownFormatError, match=f"{path} says format 3, .* up to 1"):
        Store(store.path)
    path.write_text('{"format": ')
    with pytest.raises(StoreError, match=f'{path} is damaged; it should hold {{"format": 1}}'):
        Store(store.path)


def test_a_newer_run_is_a_clear_error_and_not_damage(store):
    [run] = fill(store, document())
    alter(format=7)(run.path / "run.json")
    for attempt in (store.load, store.is_finished, store.repair):
        with pytest.raises(UnknownFormatError, match=r"run.json has format 7, .* formats up to 1"):
            attempt(run.key)
    assert store.gc(outdated=versions() | {"bezoar": "9.0"}) == []
    assert run.key in store


def test_a_spec_of_another_version_is_a_clear_error_and_not_damage(store):
    [run] = fill(store, document())
    alter(spec={"colour": "red"}, versions={"bezoar": "9.0"})(run.path / "run.json")
    message = f"{run.path} was written by bezoar 9.0 and cannot be read by {__version__}: "
    with pytest.raises(UnknownFormatError, match=f"{message}no field 'colour'; allowed: "):
        spec_of(store.load(run.key))
    alter(spec={"seed": -1})(run.path / "run.json")
    with pytest.raises(UnknownFormatError, match=f"{message}seed: expected .*, found -1"):
        spec_of(store.load(run.key))
    assert store.is_finished(run.key)
    assert store.repair(run.key) is None
    assert store.gc() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"name": "a", "agents": 2, "edges": [[0, 1]]}',
        b'{"name": "a", "agents": 2, "edges": [[0, 5]], "poisoned": []}',
        b'{"name": "a", "agents": 2, "edges": [0, 1], "poisoned": []}',
        b'{"name": "a", "agents": 2, "edges": 1, "poisoned": []}',
        b'{"name": "a", "agents": "b", "edges": [[0, 1]], "poisoned": []}',
        b'{"name": "a", "agents": 2, "edges": [[0, 1]], "poisoned": [2]}',
        b'{"name": "a", "agents": 2, "edges": [[0, 1]], "poisoned": 1}',
        b'{"name": "a", "agents": 3, "edges": [[0, 1]], "poisoned": []}',
    ],
)
def test_a_network_that_fits_its_checksum_and_makes_no_sense(store, content):
    [run] = fill(store, document())
    forge(run.path / "network.json", content)
    with pytest.raises(BrokenRunError, match=r"network.json cannot be read"):
        _ = store.load(run.key).network


def failing(monkeypatch, function, code, at=0):
    """Let a function of ``os`` fail after so many calls."""
    calls = count()
    real = getattr(os, function)

    def fail(*arguments, **options):
        # Opening what is there is no writing.
        writes = function != "open" or arguments[1] & os.O_CREAT
        if writes and next(calls) >= at:
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    monkeypatch.setattr(os, function, fail)


@pytest.mark.parametrize("function", ["fsync", "rename", "replace", "open", "mkdir"])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_full_disk_leaves_nothing_half_written(store, monkeypatch, function, fresh):
    wanted = key(document())
    if not fresh:
        fill(store, document(seed=1))
    before = contents(store.path, without=("format.json",)) if not fresh else {}
    for at in range(20):
        with monkeypatch.context() as patch:
            failing(patch, function, errno.ENOSPC, at)
            try:
                fill(store, document())
                break
            except StoreError as error:
                message = str(error)
        assert message == (
            f"store: cannot write to {store.path}: No space left on device; free some space "
            "there, or choose another store"
        )
        # After the move only the wait for the disk is left: the run is whole.
        if wanted in store:
            store.load(wanted).verify()
            break
        assert names(store.staging_folder) == []
        assert contents(store.path, without=("format.json",)) == before
    else:
        pytest.fail("saving never came to its end")
    fill(store, document())
    store.load(wanted).verify()
    assert names(store.staging_folder) == names(store.locks_folder) == []


def test_a_file_that_may_not_grow_leaves_nothing_half_written(store):
    """The system itself stops the writing in the middle of a file."""
    fill(store, document(seed=1))
    before = contents(store.path, without=())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(StoreError, match=f"cannot write to {store.path}: File too large"):
            fill(store, document())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(store.path, without=()) == before
    assert names(store.staging_folder) == []


def test_a_read_only_store_can_be_read_and_says_why_it_cannot_be_written(store, monkeypatch):
    [run] = fill(store, document())
    begun = store.group([run.key], [document()])
    failing(monkeypatch, "open", errno.EROFS)
    failing(monkeypatch, "mkdir", errno.EROFS)
    assert store.load(run.key)["accuracy"].tolist() == run["accuracy"].tolist()
    assert len(list(Store(store.path).runs())) == 1
    message = f"cannot write to {store.path}: Read-only file system; choose a store that can be"
    for attempt in (lambda: fill(store, document(seed=1)), begun.write):
        with pytest.raises(StoreError, match=message):
            attempt()
    assert key(document(seed=1)) not in store
    assert store.begun_groups() == []


def test_a_file_in_place_of_the_store(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(StoreError, match=f"store: {path} is not a folder"):
        Store(path)
    store = Store(tmp_path / "store")
    (tmp_path / "store").mkdir()
    store.runs_folder.write_text("")
    with pytest.raises(StoreError, match="a file is where a folder is needed"):
        fill(store, document())
    assert store.runs_folder.read_text() == ""


def test_a_place_where_nobody_may_write():
    store = Store("/proc/bezoar/store")
    assert key(document()) not in store
    for attempt in (
        lambda: fill(store, document()),
        store.group([key(document())], [document()]).write,
    ):
        with pytest.raises(StoreError, match=r"cannot write to /proc/bezoar/store: .*; choose a"):
            attempt()
