"""Locks between processes that are killed, and saving that is cut short."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import Timeout
from store_runs import contents, document, fill, key, names, new_store

HERE = str(Path(__file__).parent)


def start(script, *arguments):
    """A Python process that can import the helpers of these tests."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([HERE, *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def is_free(lock):
    """Whether a lock can be had without waiting; it is given back."""
    try:
        with lock.acquire(blocking=False):
            return True
    except Timeout:
        return False


HOLDS = """
import sys
from filelock import Timeout
from store_runs import Store, document, key
store = Store(sys.argv[1])
try:
    with store.writing():
        lock = store.group([key(document())], [document()]).lock()
        lock.acquire(blocking=False)
    print("held", flush=True)
except Timeout:
    print("refused", flush=True)
sys.stdin.read()
"""


def test_a_group_is_held_by_one_process_until_that_is_killed(tmp_path):
    store = new_store(tmp_path)
    group = store.group([key(document())], [document()])
    other = store.group([key(document(seed=1))], [document(seed=1)])
    with start(HOLDS, store.path) as first, start(HOLDS, store.path) as second:
        answers = sorted(process.stdout.readline() for process in (first, second))
        assert answers == ["held\n", "refused\n"]
        assert not is_free(group.lock())
        assert is_free(other.lock())
        for process in (first, second):
            process.send_signal(signal.SIGKILL)
    assert is_free(group.lock())
    with group.lock():
        assert not is_free(group.lock())  # nor can this process have it twice
    assert is_free(group.lock())


def test_a_lock_that_is_held_is_no_fault_of_the_store(tmp_path):
    """Whoever meets it may wait; an error of the store would end a sweep."""
    store = new_store(tmp_path)
    with store.writing():
        held = store.lock("name").acquire(blocking=False)
    with held, pytest.raises(Timeout), store.writing():
        store.lock("name").acquire(blocking=False)


def test_a_lock_that_was_given_back_leaves_no_file(tmp_path):
    store = new_store(tmp_path)
    with store.writing(), store.lock("name"):
        assert names(store.locks_folder) == ["name.lock"]
    assert names(store.locks_folder) == []


HAMMERS = """
import os, sys
from pathlib import Path
from filelock import Timeout
from store_runs import Store

store, inside, count = Store(sys.argv[1]), Path(sys.argv[2]), 0
while count < 300:
    try:
        with store.lock("name").acquire(blocking=False):
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if another process is here
            inside.unlink()
            count += 1
    except Timeout:
        pass
print(count)
"""


def test_never_two_at_once_although_lock_files_are_removed(tmp_path):
    store = new_store(tmp_path)
    with store.writing():
        pass
    arguments = (HAMMERS, store.path, tmp_path / "inside")
    with start(*arguments) as first, start(*arguments) as second, start(*arguments) as third:
        for process in (first, second, third):
            assert process.communicate()[0] == "300\n"
            assert process.returncode == 0
    assert names(store.locks_folder) == []


DIES = """
import os, signal, sys
from itertools import count
from store_runs import Store, document, fill

function, at = sys.argv[2], int(sys.argv[3])
calls, real = count(), getattr(os, function)

def die(*arguments, **options):
    if next(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)

setattr(os, function, die)
fill(Store(sys.argv[1]), document())
"""

#: Saving waits for the disk after each of four files, after their folder, and after the move.
WAITS = 6


@pytest.mark.parametrize(
    ("function", "at"), [*(("fsync", at) for at in range(WAITS)), ("rename", 0)]
)
def test_a_process_killed_while_saving_leaves_a_whole_run_or_none(tmp_path, function, at):
    store, undisturbed = new_store(tmp_path), new_store(tmp_path / "undisturbed")
    fill(store, document(seed=1))  # so that the first call is about the run
    fill(undisturbed, document(), document(seed=1))
    with start(DIES, store.path, function, at) as process:
        assert process.wait() == -signal.SIGKILL
    moved = (function, at) == ("fsync", WAITS - 1)
    assert (key(document()) in store) == store.is_finished(key(document())) == moved
    assert len(names(store.staging_folder)) == (not moved)
    fill(store, document())
    assert len(store.gc()) == (not moved)
    assert contents(store.path) == contents(undisturbed.path)
    assert names(store.staging_folder) == names(store.locks_folder) == []
