"""One agent: its training, and what it writes down."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bezoar import data
from bezoar._errors import BezoarError
from bezoar._files import make_folder
from bezoar.agents._exchange import OverNetwork
from bezoar.agents._keys import Key, Peer
from bezoar.agents._neighbours import Event, Neighbours, StoppedError
from bezoar.agents._prometheus import serve_metrics
from bezoar.agents._records import Records
from bezoar.experiments import Prepared, RunSpec, agreement, one_agent, prepare
from bezoar.training import ALGORITHMS, Checkpoint, History, Task, Workers

#: The file in an agent's folder from which it goes on.
CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Setting:
    """What an agent is told.

    Attributes:
        spec: what is trained, the same for all agents.
        name: the agent's name in the network.
        key: its own key.
        peers: its neighbours, by name; others are not looked at.
        listen: where it listens, ``HOST:PORT``.
        folder: where it writes.
        patience: seconds to wait for a neighbour in a round.
        wait: seconds to wait for neighbours that have not begun yet.
        data: its own samples, a ``.npz`` file; by default those that the spec gives it.
        observers: who may ask for status and results, beside its owner.
        checkpoint_seconds: how many seconds of training may be lost when the process dies.
        prometheus: where to serve metrics, ``HOST:PORT``; by default nowhere.
        workers: how many threads; by default one a core.
        stay: whether to go on answering after the last round, until it is stopped.
    """

    spec: RunSpec
    name: str
    key: Key
    peers: dict[str, Peer]
    listen: str
    folder: Path
    patience: float
    wait: float
    data: Path | None = None
    observers: tuple[Peer, ...] = ()
    checkpoint_seconds: float = 30.0
    prometheus: str | None = None
    workers: int | None = None
    stay: bool = False


def run_agent(setting: Setting, watch: Callable[[Event], Any] | None = None) -> History | None:
    """Train one agent together with its neighbours, from its last checkpoint if it has one.

    Args:
        setting: what it is told.
        watch: is told every event.

    Returns:
        What was measured; nothing if it was stopped before the end.

    Raises:
        BezoarError: with the field, what was found and what is allowed.
    """
    run, partition = _prepared(setting)
    agent = _number(setting, run)
    make_folder(setting.folder)
    neighbours = _neighbours_of(setting, run, agent)
    path, spec = setting.folder / CHECKPOINT, agreement(setting.spec, run.network)
    start = Checkpoint.load(path) if path.exists() else None
    with Workers(setting.workers) as workers, _stopping() as stopped:
        records = Records(setting, run.network, spec)
        connections: list[Neighbours] = []

        def exchanges(task: Task) -> OverNetwork:
            sample = task.start()["models"][0, 0].cpu().numpy()
            connections.append(
                Neighbours(
                    *(setting.key, setting.listen, neighbours, spec, sample.dtype),
                    sample.size,
                    patience=setting.patience,
                    # Who goes on from a checkpoint joins a run that is under way.
                    wait=setting.wait if start is None else setting.patience,
                    observers=setting.observers,
                    documents=records.documents,
                    watch=records.watching(watch),
                    stopped=stopped,
                )
            )
            return OverNetwork(task, connections[0], run.spec.iterations)

        try:
            engine = one_agent(run, agent, workers, partition, exchanges)
            records.begin(connections[0])
            keeper = _Keeper(setting, records, stopped)
            with serve_metrics(setting.prometheus, records.status):
                records.resume(start)
                [history] = engine.train(start=start, keep=keeper.see)
                records.finish(history)
                connections[0].linger(engine.iterations)
                while setting.stay and not stopped.wait(1.0):
                    pass
            return history
        except StoppedError:
            records.write_status()
            return None
        finally:
            for each in connections:
                each.close()


def _prepared(setting: Setting) -> tuple[Prepared, data.Partition]:
    """The run with the agent's data, and which agent holds which samples."""
    spec = setting.spec
    if setting.data is not None:
        fields = {name: getattr(spec, name) for name in spec.model_fields_set}
        dataset = {"name": "npz", "path": str(setting.data.resolve())}
        spec = RunSpec.read({**fields, "dataset": dataset, "samples": None, "partition": "iid"})
    run = prepare(spec)
    _refuse(run)
    if setting.data is None:
        return run, run.partition()
    count, agents = len(run.dataset.train), run.network.agents
    ends = np.zeros(agents + 1, dtype=np.int64)
    ends[_number(setting, run) + 1 :] = count
    return run, data.Partition(np.arange(count), ends)


def _refuse(run: Prepared) -> None:
    """Refuse what an agent cannot do alone."""
    attack = run.run.attack
    knows = attack.knowledge
    alone = knows == "neighbours" and attack.sends_the_same()
    if knows != "own" and not alone:
        raise BezoarError(
            f"attack {attack.name}: it knows {knows!r}, but an agent sends before it hears others; "
            "allowed: attacks that follow from what the agent itself holds"
        )
    if run.run.aggregator.sums_updates():
        raise BezoarError(
            f"aggregator {run.run.aggregator.name}: it sums up what each neighbour changes, which "
            "agents that may miss each other do not; it works in 'bezoar run'"
        )
    if not run.algorithm.alone:
        allowed = [name for name, kind in ALGORITHMS.items() if kind.alone]
        raise BezoarError(
            f"algorithm {run.algorithm.name}: agents in processes of their own all send one model "
            f"an iteration, which is not enough or too much for it; allowed: {', '.join(allowed)}"
        )
    if run.spec.rounds > 1:
        raise BezoarError(
            "rounds: agents in processes of their own exchange once an iteration, found "
            f"{run.spec.rounds}; allowed: 1"
        )
    if run.spec.listening:
        raise BezoarError(
            "listening: agents in processes of their own do not tell whom they listen to, found "
            f"{list(run.spec.listening)}; allowed: []"
        )
    if run.run.network is not run.network:
        raise BezoarError(
            "silent_links, silent_agents: agents in processes of their own are silent only if they "
            "fail; allowed: 0"
        )
    if run.network.changes:
        raise BezoarError(
            "network: agents in processes of their own have the same neighbours in every "
            f"iteration, found {run.spec.network}"
        )
    if run.needs is not None:
        raise BezoarError(
            f"start: {run.spec.start} takes a training of its own before; keep its model with "
            "'bezoar run', and give every agent the .safetensors file"
        )


def _number(setting: Setting, run: Prepared) -> int:
    names = run.network.names
    if setting.name not in names:
        raise BezoarError(
            f"name: {setting.name!r} is not an agent of the {run.network.name} network; allowed: "
            f"{', '.join(names)}"
        )
    if setting.key.name != setting.name:
        raise BezoarError(
            f"key: it was made for {setting.key.name!r}, not for the agent {setting.name!r}"
        )
    return names.index(setting.name)


def _neighbours_of(setting: Setting, run: Prepared, agent: int) -> list[Peer]:
    names = run.network.named(run.network.neighbours(agent))
    if missing := [name for name in names if name not in setting.peers]:
        raise BezoarError(
            f"peers: {setting.name} has the neighbours {', '.join(names)}; there is no file for "
            f"{', '.join(missing)}"
        )
    return [setting.peers[name] for name in names]


class _Keeper:
    """Records every iteration; keeps a checkpoint now and then, at the end, and when stopped."""

    def __init__(self, setting: Setting, records: Records, stopped: threading.Event) -> None:
        self._setting, self._records, self._stopped = setting, records, stopped
        self._written = time.monotonic()

    def see(self, checkpoint: Checkpoint) -> None:
        """Record where the agent stands, and write a checkpoint if it is time."""
        self._records.advanced(checkpoint)
        stopped = self._stopped.is_set()
        done = checkpoint.iteration == self._setting.spec.iterations
        if stopped or done or time.monotonic() - self._written >= self._setting.checkpoint_seconds:
            checkpoint.save(self._setting.folder / CHECKPOINT)
            self._written = time.monotonic()
        if stopped:
            raise StoppedError


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that is set when somebody asks the process to end."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped  # only the main thread hears signals
        return
    before = signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGTERM, before)
