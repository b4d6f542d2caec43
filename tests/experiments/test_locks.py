"""Locks and claims between processes that are killed, and saving that is cut short."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bezoar.experiments._locks import Lock
from store_runs import contents, fill, names, new_store, spec

HERE = str(Path(__file__).parent)


def start(script, *arguments):
    """A Python process that can import the helpers of these tests."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": HERE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


CLAIMS = """
import sys
from store_runs import Store, spec
claim = Store(sys.argv[1]).claim(spec())
print("claimed" if claim else "refused", flush=True)
sys.stdin.read()
"""


def test_a_claim_holds_between_processes_until_its_holder_is_killed(tmp_path):
    store = new_store(tmp_path)
    with start(CLAIMS, store.path) as other, start(CLAIMS, store.path) as third:
        answers = sorted(process.stdout.readline() for process in (other, third))
        assert answers == ["claimed\n", "refused\n"]
        assert store.claim(spec()) is None
        assert store.claim(spec(seed=1)) is not None
        for process in (other, third):
            process.send_signal(signal.SIGKILL)
    with store.claim(spec()) as claim:
        assert store.claim(spec()) is None
        claim.release()
        assert store.claim(spec()) is not None


def test_a_released_claim_leaves_no_file(tmp_path):
    store = new_store(tmp_path)
    with store.claim(spec()) as claim:
        assert names(store.locks_folder) == [f"{claim.key}.lock"]
        assert Lock.is_held(store.lock_file(claim.key))
    assert names(store.locks_folder) == []
    assert not Lock.is_held(store.lock_file(claim.key))


HAMMERS = """
import os, sys
from pathlib import Path
from bezoar.experiments._locks import Lock

path, inside, count = Path(sys.argv[1]), Path(sys.argv[2]), 0
while count < 300:
    if lock := Lock.take(path):
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if another process is here
        inside.unlink()
        lock.release()
        count += 1
print(count)
"""


def test_never_two_at_once_although_lock_files_are_removed(tmp_path):
    arguments = (HAMMERS, tmp_path / "lock", tmp_path / "inside")
    with start(*arguments) as first, start(*arguments) as second, start(*arguments) as third:
        for process in (first, second, third):
            assert process.communicate()[0] == "300\n"
            assert process.returncode == 0
    assert names(tmp_path) == []


DIES = """
import os, signal, sys
from itertools import count
from store_runs import Store, fill, spec

function, at = sys.argv[2], int(sys.argv[3])
calls, real = count(), getattr(os, function)

def die(*arguments, **options):
    if next(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)

setattr(os, function, die)
fill(Store(sys.argv[1]), spec())
"""


@pytest.mark.parametrize(
    ("function", "at"),
    [("fsync", 1), ("fsync", 2), ("fsync", 3), ("fsync", 4), ("rename", 0), ("fsync", 5)],
)
def test_a_process_killed_while_saving_leaves_a_whole_run_or_none(tmp_path, function, at):
    store, undisturbed = new_store(tmp_path), new_store(tmp_path / "undisturbed")
    fill(store, spec(seed=1))  # so that the first call is about the run
    fill(undisturbed, spec(), spec(seed=1))
    with start(DIES, store.path, function, at - (function == "fsync")) as process:
        assert process.wait() == -signal.SIGKILL
    moved = (function, at) == ("fsync", 5)
    assert (spec() in store) == moved
    assert len(names(store.staging_folder)) == (not moved)
    fill(store, spec())
    assert len(store.gc()) == (not moved)
    assert contents(store.path) == contents(undisturbed.path)
    assert names(store.staging_folder) == names(store.locks_folder) == []
