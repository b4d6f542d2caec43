"""However a local run ends, none of its processes stays, and nobody waits for long."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from several import Several, settings_of, until

from bezoar.agents import _local, run_local
from bezoar.agents._local import agent_folder
from bezoar.agents._neighbours import Neighbours
from bezoar.experiments import RunSpec

NAMES = tuple("012")

#: A run that takes for ever.
SPEC = RunSpec.read(
    {
        "network": {"name": "ring", "agents": 3, "poisoned": 0},
        "samples": 100,
        "aggregator": "mean",
        "iterations": 10**6,
        "every": 10**6,
        "metrics": (),
    }
)


def is_running(process):
    """Whether a process is there that has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Begun:
    """Watches a local run; does something once all agents train, and remembers them."""

    def __init__(self, folder, work):
        self.folder, self.work, self.processes = folder, work, {}

    def __call__(self, statuses):
        if not self.processes and all(
            name in statuses and statuses[name]["round"] > 0 for name in NAMES
        ):
            self.processes = {
                name: int((agent_folder(self.folder, name) / "process").read_text())
                for name in NAMES
            }
            self.work(self.processes)


def test_an_interrupted_run_ends_its_agents_the_dead_and_the_frozen_too(tmp_path):
    def interrupt(processes):
        os.kill(processes["0"], signal.SIGKILL)
        os.kill(processes["2"], signal.SIGSTOP)
        time.sleep(1.0)
        raise KeyboardInterrupt

    begun = Begun(tmp_path, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_local(SPEC, tmp_path, patience=0.5, wait=120.0, progress=begun)
    assert not any(map(is_running, begun.processes.values()))
    kept = [(agent_folder(tmp_path, n) / "checkpoint.safetensors").exists() for n in NAMES]
    assert kept == [False, True, False]  # it wrote where it stands


def test_agents_end_when_who_started_them_dies(tmp_path, monkeypatch):
    started, real = [], subprocess.Popen

    def start(*given, **named):
        started.append(real(*given, **named))
        return started[-1]

    monkeypatch.setattr(_local.subprocess, "Popen", start)
    begun = Begun(tmp_path, lambda _: started[0].stdin.close())  # as the system does then
    outcome = run_local(SPEC, tmp_path, patience=0.5, wait=120.0, progress=begun)
    assert not any(map(is_running, begun.processes.values()))
    assert set(outcome.failed) == set(NAMES)
    assert all((agent_folder(tmp_path, n) / "checkpoint.safetensors").exists() for n in NAMES)


@pytest.mark.usefixtures("tiny_mnist")
def test_an_agent_that_waits_for_others_to_begin_can_be_stopped(tmp_path, monkeypatch):
    stops = []
    real = Neighbours.__init__

    def init(self, *given, **named):
        stops.append(named["stopped"])
        real(self, *given, **named)

    monkeypatch.setattr(Neighbours, "__init__", init)
    settings = settings_of(SPEC, tmp_path)
    several = Several({"0": settings["0"]})
    until(lambda: (tmp_path / "0" / "status.json").exists() and threading.active_count() > 2)
    time.sleep(0.5)
    before = time.monotonic()
    stops[0].set()
    assert several.join() == {"0": None}
    assert time.monotonic() - before < settings["0"].wait / 4
