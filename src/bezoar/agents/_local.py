"""All agents of a run as processes on this machine, over loopback with throwaway keys.

    keys/              a key for every agent
    agents/<name>/     what each agent writes, see _records; its log, and its process's number
    plan.json          what the processes are told

Keys stay when a run goes on; ports are chosen anew.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezoar._errors import BezoarError
from bezoar._files import make_folder, write_whole
from bezoar.agents._extra import needed
from bezoar.agents._keys import file_name, key_file, make_key, write_key
from bezoar.agents._ports import free_ports
from bezoar.agents._records import RESULT, STATUS, Status, read_status
from bezoar.agents._results import Result, read_result
from bezoar.experiments import RunSpec, network_of

#: Names of a run's folders and files.
KEYS, AGENTS, PLAN, LOG = "keys", "agents", "plan.json", "log.txt"

#: Throwaway keys are valid for so many days: a run may go on long after it was interrupted.
DAYS = 3650

#: Seconds between two looks at how the agents are doing.
LOOK = 0.2

#: Is told the status of every agent that has one, by name.
Progress = Callable[[Mapping[str, Status]], Any]


@dataclass(frozen=True)
class LocalRun:
    """What became of a run.

    Attributes:
        results: of every agent that finished, by name.
        failed: what the others said last, by name.
    """

    results: dict[str, Result]
    failed: dict[str, str]


def run_local(
    spec: RunSpec,
    folder: Path,
    *,
    patience: float,
    wait: float,
    checkpoint_seconds: float = 30.0,
    progress: Progress | None = None,
) -> LocalRun:
    """Train every agent of a run in a process of its own.

    Args:
        spec: what is run.
        folder: where the agents write. Where they were interrupted, they go on.
        patience: seconds that an agent waits for a neighbour in a round.
        wait: seconds that it waits for neighbours that have not begun yet.
        checkpoint_seconds: training that may be lost when a process dies.
        progress: is told how they are doing.
    """
    needed("grpc")
    names = network_of(spec).names
    _check_folder(folder, spec)
    _make_keys(names, folder / KEYS)
    plan = {
        "spec": spec.document(),
        "base": str(Path.cwd()),
        "names": list(names),
        "ports": dict(zip(names, free_ports(len(names)), strict=True)),
        "patience": patience,
        "wait": wait,
        "checkpoint_seconds": checkpoint_seconds,
    }
    write_whole(folder / PLAN, json.dumps(plan, indent=2).encode())
    for name in names:
        make_folder(agent_folder(folder, name))
    # A process of its own starts the agents: it has imported torch, and not yet gRPC, after whose
    # import no process may be forked. Starting each from scratch takes seconds an agent.
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bezoar.agents._nursery", str(folder)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # closed when this process dies, which ends the agents, too
        env=os.environ | one_thread,
        start_new_session=True,
    ) as nursery:
        try:
            while nursery.poll() is None:
                time.sleep(LOOK)
                if progress is not None:
                    progress(statuses(folder, names))
        except BaseException:
            nursery.terminate()  # it asks the agents to end, and they write where they stand
            nursery.wait()
            raise
    return _outcome(folder, names)


def _check_folder(folder: Path, spec: RunSpec) -> None:
    """Refuse a folder in which agents of another run write."""
    try:
        known = json.loads((folder / PLAN).read_bytes())
    except FileNotFoundError:
        return
    except ValueError:
        known = None
    if not isinstance(known, dict) or known.get("spec") != spec.document():
        raise BezoarError(
            f"folder: {folder} has agents of another run; choose another folder, or remove it"
        )


def agent_folder(folder: Path, name: str) -> Path:
    """Where an agent of a local run writes."""
    return folder / AGENTS / file_name(name)


def statuses(folder: Path, names: tuple[str, ...]) -> dict[str, Status]:
    """The status of every agent that has one."""
    found = {}
    for name in names:
        try:
            content = (agent_folder(folder, name) / STATUS).read_bytes()
            found[name] = read_status(content, name)
        except (OSError, BezoarError):
            continue
    return found


def _make_keys(names: tuple[str, ...], folder: Path) -> None:
    for name in names:
        if not key_file(folder, name).exists():
            write_key(make_key(name, DAYS), folder)


def _outcome(folder: Path, names: tuple[str, ...]) -> LocalRun:
    results: dict[str, Result] = {}
    failed: dict[str, str] = {}
    for name in names:
        own = agent_folder(folder, name)
        try:
            results[name] = read_result((own / RESULT).read_bytes(), str(own))
        except (OSError, BezoarError):
            log = own / LOG
            lines = log.read_text(errors="replace").split("\n") if log.exists() else []
            failed[name] = next((line for line in reversed(lines) if line.strip()), "nothing")
    return LocalRun(results, failed)
