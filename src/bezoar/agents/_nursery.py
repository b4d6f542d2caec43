"""The process that starts the agents of a local run: torch is imported once, not once an agent."""

import json
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

from bezoar._errors import BezoarError
from bezoar.agents._agent import Setting, run_agent
from bezoar.agents._keys import Peer, key_file, read_key
from bezoar.agents._local import KEYS, LOG, LOOK, PLAN, agent_folder
from bezoar.experiments import RunSpec, prepare

#: Seconds that an agent has to end its round, at the most; and to write where it stands.
ROUND, GRACE = 60.0, 5.0


def main(folder: Path) -> int:
    """Start all agents, and wait for them; 0 if all of them finished."""
    asked = list[float]()
    signal.signal(signal.SIGTERM, lambda *_: asked.append(time.monotonic()))
    plan = json.loads((folder / PLAN).read_bytes())
    os.chdir(plan["base"])
    spec = RunSpec.read(plan["spec"], Path(plan["base"]))
    prepare(spec).partition()  # read and divided once: the processes share the memory
    keys = {name: read_key(key_file(folder / KEYS, name)) for name in plan["names"]}
    peers = {
        name: Peer(name, key.certificate, f"127.0.0.1:{plan['ports'][name]}")
        for name, key in keys.items()
    }
    agents = []
    for name, key in keys.items():
        process = os.fork()
        if process == 0:
            setting = Setting(
                *(spec, name, key, peers, peers[name].address, agent_folder(folder, name)),
                patience=plan["patience"],
                wait=plan["wait"],
                checkpoint_seconds=plan["checkpoint_seconds"],
                workers=1,
            )
            _be(setting)
        agents.append(process)

    return int(any(_codes(set(agents), asked, min(2 * plan["patience"], ROUND) + GRACE)))


def _codes(agents: set[int], asked: list[float], grace: float) -> list[int]:
    """Wait for the agents' processes; their exit codes.

    Args:
        agents: the processes.
        asked: when this process was asked to end. The agents are then asked, too, and write where
            they stand.
        grace: an agent that has not ended so many seconds later, as a frozen one, is killed.
    """
    codes = []
    while agents:
        if asked:
            time.sleep(LOOK)
        elif select.select([sys.stdin], [], [], LOOK)[0]:
            asked.append(time.monotonic())  # the other end is closed: who started this has died
        late = bool(asked) and time.monotonic() - asked[0] > grace
        for process in list(agents):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                agents.remove(process)
                codes.append(os.waitstatus_to_exitcode(status))
            elif asked:
                os.kill(process, signal.SIGKILL if late else signal.SIGTERM)
    return codes


def _be(setting: Setting) -> NoReturn:
    """Be one agent; what it says goes to its log."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = 1
    try:
        (setting.folder / "process").write_text(f"{os.getpid()}\n")
        log = os.open(setting.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = 0 if run_agent(setting) is not None else 3
    except BezoarError as error:
        print(f"bezoar: {error}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]).resolve()))
    except BezoarError as error:
        sys.exit(f"bezoar: {error}")
