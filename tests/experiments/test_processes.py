"""Sweeps by processes that are killed, frozen or cut off: on this machine, and as workers of Dask.

The store is compared, byte for byte, with that of a sweep in one process that nobody disturbed.
"""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import BrokenExecutor

import numpy as np
import pytest
from sweep_runs import Notes, contents
from sweep_server import some_digits

from bezoar import BezoarError, experiments
from bezoar.experiments import Processes, Store, _elsewhere, executor_on, expand

#: Seconds of training in a slice; a group takes several.
SLICE = 0.15

FIELDS = {
    "iterations": 40,
    "every": 20,
    "metrics": ["accuracy", "consensus_error"],
    "partition": "by_class",
    "aggregator": ["ios", "faba"],
    "keep_models": True,
    "seed": [0, 1, 2],
}

#: The two ends of the cable between this machine and the other.
HERE, THERE = "10.213.77.1", "10.213.77.2"

DRIVER = """
from sys import argv
from bezoar.experiments import Processes, expand, sweep
if __name__ == "__main__":
    with Processes(2, threads=1) as processes:
        sweep(argv[1], argv[2], processes, checkpoint_seconds=float(argv[3]))
"""


class Disturbed(Notes):
    """Sends a signal to a worker as soon as another one has answered."""

    def __init__(self, what):
        super().__init__()
        self.what, self.workers, self.victim = what, [], None

    def worked(self, worker, keys, iterations, seconds):
        process = int(worker.rpartition("/")[2])
        if process not in self.workers:
            self.workers.append(process)
        if self.victim is None and len(self.workers) > 1:
            self.victim = next(each for each in self.workers if each != process)
            os.kill(self.victim, self.what)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    digits = some_digits(210)
    np.savez(
        folder / "digits.npz",
        x_train=digits.train,
        y_train=digits.train_labels,
        x_test=digits.test,
        y_test=digits.test_labels,
    )
    return expand(FIELDS | {"dataset": str(folder / "digits.npz")})


@pytest.fixture(scope="module")
def undisturbed(wanted, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("undisturbed"))
    experiments.sweep(wanted, store, workers=1)
    return contents(store)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(_elsewhere, "WORTH", 0)
    monkeypatch.setattr(_elsewhere, "LEAST", 0.5)


@pytest.fixture(scope="module")
def processes():
    with Processes(2, threads=1) as running:
        yield running


def sweep(wanted, store, executor, watch, at_once=None):
    swept = experiments.sweep(wanted, store, executor, watch, SLICE, at_once=at_once)
    assert not swept.failures
    return contents(Store(store))


def test_processes_one_of_which_is_killed(wanted, undisturbed, processes, tmp_path):
    watch = Disturbed(signal.SIGKILL)
    assert sweep(wanted, tmp_path, processes, watch) == undisturbed
    assert watch.victim is not None  # whether it had work to do at that moment is left to chance
    assert watch.victim not in {process.pid for process in multiprocessing.active_children()}


def test_the_driver_is_killed_and_called_again(wanted, undisturbed, processes, tmp_path):
    document, store = tmp_path / "sweep.toml", Store(tmp_path / "store")
    fields = FIELDS | {"dataset": str(wanted[0].dataset.options["path"])}
    # JSON's texts, numbers, lists and truth values are TOML's, too.
    document.write_text("".join(f"{name} = {json.dumps(told)}\n" for name, told in fields.items()))
    # Its first slices are so short that none is a whole training on any machine.
    driver = [sys.executable, "-c", DRIVER, str(document), str(store.path), str(SLICE / 30)]
    with subprocess.Popen(driver) as running:
        while not list(store.groups_folder.glob("*/checkpoint.safetensors")):
            assert running.poll() is None
            time.sleep(0.002)
        running.kill()
    notes = Notes()
    assert sweep(wanted, store.path, processes, notes) == undisturbed
    assert max(notes.began_at) > 0


def test_a_function_that_fails_in_a_process(processes):
    with pytest.raises(ZeroDivisionError):
        processes.submit(divmod, 1, 0).result()
    assert processes.submit(divmod, 7, 2).result() == (3, 1)


def test_a_frozen_process_is_not_waited_for_at_the_end():
    with executor_on("local:1", 1) as (executor, at_once):
        process = executor.submit(os.getpid).result()
        os.kill(process, signal.SIGSTOP)
        frozen = executor.submit(os.getpid)
        while not frozen.running():
            time.sleep(0.01)
        assert at_once() == 1
    assert isinstance(frozen.exception(timeout=60), BrokenExecutor)
    assert process not in {each.pid for each in multiprocessing.active_children()}


@pytest.mark.parametrize("where", ["local", "local:0", "local:-1", "dask:", "mpi:4"])
def test_where_a_sweep_cannot_be(where):
    message = rf"on: expected local:4 .* or dask:.*, found '{where}'"
    with pytest.raises(BezoarError, match=message), executor_on(where):
        pass


def test_without_dask_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = r"'pip install bezoar\[cluster\]' installs it"
    with pytest.raises(BezoarError, match=message), executor_on("dask:tcp://127.0.0.1:8786"):
        pass


def test_without_a_certificate_a_sentence_says_what_to_set():
    pytest.importorskip("distributed")
    message = r"on: tls://127.0.0.1:1 wants to see a certificate.*CLIENT__KEY"
    with pytest.raises(BezoarError, match=message), executor_on("dask:tls://127.0.0.1:1"):
        pass


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("bezoar.experiments._executors.CONNECTING", "200ms")
    message = r"on: no Dask scheduler answers at tcp://127.0.0.1:1 "
    with pytest.raises(BezoarError, match=message), executor_on("dask:tcp://127.0.0.1:1"):
        pass


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with (
            distributed.LocalCluster(**options, silence_logs="CRITICAL") as running,
            executor_on(f"dask:{running.scheduler_address}") as (executor, at_once),
        ):
            yield executor, at_once


@pytest.mark.parametrize("what", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.filterwarnings("ignore")
def test_dask_workers_one_of_which_is_frozen_or_killed(
    wanted, undisturbed, cluster, tmp_path, what
):
    watch = Disturbed(what)
    try:
        assert sweep(wanted, tmp_path, cluster[0], watch, cluster[1]) == undisturbed
    finally:
        if what == signal.SIGSTOP and watch.victim is not None:
            os.kill(watch.victim, signal.SIGCONT)
    assert watch.victim is not None
    if what == signal.SIGSTOP:
        assert any(message.startswith("no answer for") for message in watch.messages)


class Helped(Notes):
    """Starts a worker when it is told that there is none."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.counts = cluster, []

    def workers(self, count):
        self.counts.append(count)
        if count == 0:
            self.cluster.scale(1)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_without_workers_is_told_of_and_a_worker_that_comes_is_used(
    wanted, undisturbed, tmp_path, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(_elsewhere, "NOBODY", 1.0)
    options = {"n_workers": 0, "threads_per_worker": 1, "dashboard_address": None}
    with (
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(**options, silence_logs="CRITICAL") as running,
        executor_on(f"dask:{running.scheduler_address}") as (executor, at_once),
    ):
        watch = Helped(running)
        assert at_once() == 0
        assert sweep(wanted, tmp_path, executor, watch, at_once) == undisturbed
    assert watch.counts == [0, 1]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def machine():
    """The name of a network namespace that a cable leads to."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("a machine of its own needs root and the command ip")
    name = f"bezoar{os.getpid()}"
    here, there = f"bzh{os.getpid()}", f"bzt{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("link", "add", here, "type", "veth", "peer", "name", there)
    except subprocess.CalledProcessError as error:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)
        pytest.skip(f"no network namespace can be made here: {error.stderr.decode().strip()}")
    try:
        ip("link", "set", there, "netns", name)
        ip("address", "add", f"{HERE}/30", "dev", here)
        ip("link", "set", here, "up")
        ip("-n", name, "address", "add", f"{THERE}/30", "dev", there)
        ip("-n", name, "link", "set", there, "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name, here
    finally:
        subprocess.run(["ip", "link", "delete", here], capture_output=True)
        ip("netns", "delete", name)


class Cut(Notes):
    """Pulls the cable as soon as the worker at its other end and another one have answered."""

    def __init__(self, worker, cable):
        super().__init__()
        self.worker, self.cable, self.answered, self.done = worker, cable, set(), False

    def worked(self, worker, keys, iterations, seconds):
        self.answered.add(int(worker.rpartition("/")[2]))
        if not self.done and self.worker in self.answered and len(self.answered) > 1:
            ip("link", "set", self.cable, "down")
            self.done = True


# A worker that a busy machine keeps from its heartbeats is given up like one that is cut off, and
# a sweep without workers waits for new ones. So this is not for machines that do other work.
@pytest.mark.skipif("BEZOAR_KILLS" not in os.environ, reason="'make kills' runs this")
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_cut_off_costs_a_slice(wanted, undisturbed, machine, tmp_path):
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    namespace, cable = machine
    nobody = {"n_workers": 0, "dashboard_address": None, "silence_logs": "CRITICAL"}
    workers = []
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": "10s"}),
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(**nobody, host=HERE) as running,
    ):
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", running.scheduler_address]
        worker += ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        # Torch is imported before the first heartbeat is due.
        worker += ["--preload", "bezoar.experiments._advance", "--local-directory"]
        try:
            for number, where in enumerate((["ip", "netns", "exec", namespace], [])):
                folder = tmp_path / f"worker {number}"
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                workers.append(subprocess.Popen([*where, *worker, str(folder)], **quiet))
            with executor_on(f"dask:{running.scheduler_address}") as (executor, at_once):
                until = time.monotonic() + 120
                while at_once() < len(workers) and time.monotonic() < until:
                    time.sleep(0.05)
                assert at_once() == len(workers)
                watch, store = Cut(workers[0].pid, cable), tmp_path / "store"
                swept = experiments.sweep(wanted, store, executor, watch, SLICE, at_once=2)
        finally:
            for each in workers:
                each.kill()
                each.wait()
    assert watch.done
    assert not swept.failures
    assert contents(Store(store)) == undisturbed


def test_there_is_one_process_at_least():
    with pytest.raises(BezoarError, match="count: expected an integer of at least 1, found 0"):
        Processes(0)
