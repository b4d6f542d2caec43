"""Sweeps in processes that may be killed.

A server imports everything once and starts no thread; then it forks a process a sweep, which is
ready in milliseconds. Run as a script, it reads orders from its input, one JSON document a line.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from bezoar import _files, data
from bezoar.experiments import Store, Watch, _sweep, expand, versions

#: Where a process may be made to die: before or after a file is moved to its place, at anything
#: that is done to the disk, or in the middle of a file.
MOVES = ("replace", "rename")
CALLS = (*MOVES, "fsync", "unlink", "rmdir", "mkdir")
TORN = ("write",)


class Server:
    """The server as the tests see it; use it in a ``with`` statement."""

    def __enter__(self):
        # Forked processes import pyarrow themselves: it starts a thread.
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | one_thread,
            cwd=gettempdir(),  # in no checkout, whose state might change between two sweeps
        )
        if self._process.stdout.readline() != "ready\n":
            self.__exit__()
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *_):
        with self._process:
            self._process.stdin.close()

    def start(self, **order):
        """Start a sweep; returns the id of its process."""
        return self._ask({"do": "start", **order})

    def wait(self, process):
        """Wait for a sweep to end; returns the exit code, negative for the signal it died of."""
        return os.waitstatus_to_exitcode(self._ask({"do": "wait", "process": process}))

    def is_running(self, process):
        """Whether a sweep has not ended yet."""
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"

    def sweep(self, **order):
        """Run a sweep to its end."""
        return self.wait(self.start(**order))

    def _ask(self, order):
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def some_digits(count):
    """Real MNIST: so many training images of each digit, and ten test images."""
    whole = data.mnist()

    def first(labels, count):
        return np.sort(np.concatenate([np.flatnonzero(labels == c)[:count] for c in range(10)]))

    train, test = first(whole.train_labels, count), first(whole.test_labels, 10)
    return data.Dataset(
        "some_digits",
        whole.train[train],
        whole.train_labels[train],
        whole.test[test],
        whole.test_labels[test],
        classes=10,
    )


def as_images(digits, name="digit_images"):
    """The same digits as images of 16 × 16 pixels."""

    def middle(pixels):
        return pixels.reshape(-1, 1, 28, 28)[:, :, 6:22, 6:22].copy()

    train, test = middle(digits.train), middle(digits.test)
    return data.Dataset(name, train, digits.train_labels, test, digits.test_labels, classes=10)


def register_digits():
    """Let specs name datasets small enough to train on in milliseconds."""
    digits = some_digits(210)
    images = as_images(some_digits(20))
    data.DATASETS |= {"some_digits": lambda: digits, "digit_images": lambda: images}


def serve():
    """Fork a process for every order."""
    register_digits()
    # Torch, and what it imports at the first network, so that forked processes need not.
    import_module("bezoar.experiments._prepare")
    import_module("torch._dynamo")
    versions()  # of the source that was imported, whatever becomes of it while the server runs
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads must not be forked"
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "wait":
            print(os.waitpid(order["process"], 0)[1], flush=True)
            continue
        process = os.fork()
        if process == 0:
            os._exit(work(order))
        print(process, flush=True)


def work(order):
    """Sweep; the exit code says how it went."""
    try:
        _sweep.WORTH = 0
        _sweep.PATIENCE = 0.05
        specs = [spec for fields in order["documents"] for spec in expand(fields)]
        watch = Log(order["log"], **order.get("death", {}))
        seconds = order.get("checkpoint_seconds", 0.0)
        store = Store(order["store"])
        swept = _sweep.sweep(specs, store, None, watch, seconds, workers=1)
        if "results" in order:
            results = [getattr(run, "key", None) for run in swept.runs]
            Path(order["results"]).write_text(json.dumps(results))
    except BaseException:
        traceback.print_exc()
        return 3
    return 0


class Log(Watch):
    """Writes down what happens, and may end the process.

    Args:
        path: a file to which a line is added for every event.
        after: dies after so many iterations; 0 for when a group's last one is done,
        calls: when one of these functions of ``os`` is called next; ``write`` is half done then,
        skip: or after so many calls more,
        late: just after the call instead of before it.
    """

    def __init__(self, path, after=None, calls=(), skip=0, late=False):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._left = after
        self._calls, self._skip, self._late = calls, skip, late

    def began(self, keys, specs, iteration):
        self._last = specs[0].iterations
        self._write("began", keys, iteration)
        self._arm_after_the_last(iteration)

    def advanced(self, keys, iteration, metrics):
        self._write("advanced", keys, iteration)
        if self._left:
            self._left -= 1
            if self._left == 0:
                self._left = None
                self._arm()
        self._arm_after_the_last(iteration)

    def ended(self, keys, failed):
        self._write("failed" if failed else "ended", keys, 0)

    def said(self, message):
        self._add({"event": "said", "message": message})

    def _write(self, event, keys, iteration):
        self._add({"event": event, "keys": list(keys), "iteration": iteration})

    def _add(self, document):
        document["process"] = os.getpid()
        os.write(self._file, (json.dumps(document) + "\n").encode())

    def _arm_after_the_last(self, iteration):
        if self._left == 0 and iteration == self._last:
            self._left = None
            self._arm()

    def _arm(self):
        if not self._calls:
            die()
        for name in self._calls:
            if name == "write":
                _files.open = self._torn
            else:
                setattr(os, name, self._deadly(getattr(os, name)))

    def _torn(self, *given):
        """A file that gets half of what is written to it, before the process dies."""
        file = open(*given)  # noqa: SIM115 - whoever asked for it closes it
        self._skip -= 1
        return file if self._skip >= 0 else TornFile(file)

    def _deadly(self, call):
        def dying(*given, **named):
            self._skip -= 1
            if self._skip < 0 and not self._late:
                die()
            result = call(*given, **named)
            if self._skip < 0:
                die()
            return result

        return dying


class TornFile:
    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, content):
        self._file.write(content[: len(content) // 2])
        self._file.flush()
        die()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve()
