"""``bezoar agents …``."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import typer

from bezoar._errors import BezoarError
from bezoar.agents import (
    Event,
    Key,
    Peer,
    Result,
    Setting,
    Status,
    agent_folder,
    ask,
    collect,
    key_file,
    make_key,
    note,
    read_key,
    read_peers,
    read_result,
    read_status,
    run_agent,
    run_local,
    together,
    write_key,
)
from bezoar.cli._screen import (
    console,
    errors,
    print_json,
    print_path,
    print_problem,
    print_table,
    training_progress,
)
from bezoar.experiments import RunSpec, Store, network_of, read_spec
from bezoar.report import Table

#: Seconds to wait for an answer, and the bytes it may have.
SECONDS, STATUS_BYTES, RESULT_BYTES = 30.0, 1 << 20, 2 << 30

GOES_ON = "the same command goes on from the agents' last checkpoints"

T = TypeVar("T")


def run_here(given: Mapping[str, Any]) -> None:
    """Train every agent in a process on this machine; ``given`` is what was typed."""
    spec, folder = read_spec(given["spec"]), given["folder"]
    network = network_of(spec)
    try:
        with training_progress(f"{network.agents} agents · {spec.network}") as progress:

            def show(statuses: Mapping[str, Status]) -> None:
                if statuses:
                    done = min(each["round"] for each in statuses.values())
                    known = [each["accuracy"] for each in statuses.values()]
                    progress(done, spec.iterations, [a for a in known if a is not None])

            waiting = {name: given[name] for name in ("patience", "wait", "checkpoint_seconds")}
            run = run_local(spec, folder, **waiting, progress=show)
    except KeyboardInterrupt:
        print_problem(f"interrupted; {GOES_ON}")
        raise typer.Exit(130) from None
    for name, told in run.failed.items():
        log = agent_folder(folder, name) / "log.txt"
        print_problem(f"agent {name} did not finish; its last words in {log}: {told}")
    if run.results:
        _show_results(spec, list(run.results.values()), given["store"], given["json"])
    if run.failed:
        raise typer.Exit(1)


def make_own_key(name: str, address: str, out: Path, days: int) -> None:
    """Make a key, and say what to do with it."""
    own, public = write_key(make_key(name, days), out, address)
    print_path("Key, for this machine alone", own)
    print_path("For its neighbours, into their folder of peers", public)
    if not address:
        console.print("Its address is empty: write there where its neighbours reach it, HOST:PORT.")


def start_agent(given: Mapping[str, Any]) -> None:
    """Train one agent; what happens is told on the error stream. ``given`` is what was typed."""
    name, observers = given["name"], given["observers"]
    same = ("name", "listen", "data", "patience", "wait", "checkpoint_seconds", "prometheus")
    setting = Setting(
        spec=read_spec(given["spec"]),
        key=read_key(given["own_key"] or key_file(Path(), name)),
        peers=read_peers(given["peers"]),
        folder=given["folder"] or agent_folder(Path(), name),
        observers=tuple(read_peers(observers).values()) if observers else (),
        **{field: given[field] for field in (*same, "workers", "stay")},
    )
    history = run_agent(setting, _Teller().tell)
    if history is None:
        print_problem(f"stopped; {GOES_ON}")
        raise typer.Exit(130)
    accuracy = history.agents["accuracy"][-1, 0]
    told = f"{name}: {setting.spec.iterations} rounds, accuracy {accuracy:.4f}"
    console.print(told, markup=False)
    print_path("Results", setting.folder)


class _Teller:
    """Prints events; an event that a neighbour repeats round after round is printed once."""

    def __init__(self) -> None:
        self._last: dict[str, Event] = {}

    def tell(self, event: Event) -> None:
        last = self._last.get(event.peer)
        self._last[event.peer] = event
        if last and (last.what, last.round) == (event.what, event.round - 1):
            return
        who = f"{event.peer} is missing ({event.what})" if event.peer else event.what
        line = f"round {event.round}: {who}: {event.told}"
        errors.print(line, markup=False, soft_wrap=True)


def show_status(given: Mapping[str, Any]) -> None:
    """Show where agents stand; ``given`` is what was typed."""
    statuses = _documents(given, "status", "status.json", STATUS_BYTES, read_status)
    if given["json"]:
        print_json({"agents": statuses})
    else:
        _print_statuses(statuses)


def collect_results(given: Mapping[str, Any]) -> None:
    """Bring the results of agents together in a store; ``given`` is what was typed."""
    results = _documents(given, "results", "result.safetensors", RESULT_BYTES, read_result)
    _show_results(read_spec(given["spec"]), results, given["store"], given["json"])


def _show_results(spec: RunSpec, results: Sequence[Result], store: Path | None, json: bool) -> None:
    network, history = together(spec, results)
    statuses = {each.name: each.status for each in results}
    kept = None if store is None else collect(spec, results, Store(store))
    if json:
        print_json(
            {
                "spec": spec.document(),
                "iterations": history.iterations.tolist(),
                "metrics": {name: values.tolist() for name, values in history.metrics.items()},
                "agents": {name: values.tolist() for name, values in history.agents.items()},
                "statuses": statuses,
                "key": None if kept is None else kept.key,
            }
        )
        return
    _print_statuses(list(statuses.values()))
    last = {name: values[-1] for name, values in history.metrics.items()}
    told = f"mean {last['accuracy_mean']:.4f}, lowest {last['accuracy_worst']:.4f}"
    console.print(f"Accuracy of the regular agents: {told}.")
    console.print(note(statuses, network), markup=False)
    if kept is not None:
        print_path("Run", kept.path)


def _print_statuses(statuses: Sequence[Status]) -> None:
    rows = [
        (
            each["name"],
            each["state"],
            f"{each['round']}/{each['rounds']}",
            "" if each["accuracy"] is None else f"{each['accuracy']:.4f}",
            str(each["misses"]),
            str(each["jumps"]),
            f"{each['bytes_sent'] / 1e6:.1f}",
            f"{each['bytes_received'] / 1e6:.1f}",
        )
        for each in statuses
    ]
    told = ("agent", "state", "round", "accuracy", "misses", "jumps", "MB sent", "MB received")
    print_table(Table.of("", told, rows))
    missed = [
        (each["name"], peer, reason, str(number))
        for each in statuses
        for peer, link in each["peers"].items()
        for reason, number in link["misses"].items()
    ]
    if missed:
        heads = ("agent", "missed", "because", "rounds")
        print_table(Table.of("Who was missing", heads, missed))


def _documents(
    given: Mapping[str, Any], what: str, file: str, most: int, read: Callable[..., T]
) -> list[T]:
    """What is read of each of several agents: of files, or of agents that are asked.

    What cannot be had or read is told of; one agent's must be.
    """
    paths = {path for folder in given["folders"] or () for path in folder.rglob(file)}
    sources: list[Callable[[], T]] = [partial(_read_file, path, read) for path in sorted(paths)]
    if given["peers"] is not None or given["at"] is not None:
        if given["own_key"] is None:
            raise BezoarError("key: agents are asked with a key that they know; give --key")
        key = read_key(given["own_key"])
        asked = {key.name: Peer(key.name, key.certificate, given["at"])} if given["at"] else {}
        known = read_peers(given["peers"]) if given["peers"] else {}
        asked |= {name: peer for name, peer in known.items() if peer.address}
        for peer in asked.values():
            sources.append(partial(_read_answer, key, peer, what, most, read))
    found: list[T] = []
    for get in sources:
        try:
            found.append(get())
        except BezoarError as error:
            print_problem(str(error))
    if not found:
        raise BezoarError(
            f"agents: no {what} found; give folders in which agents write, or --peers or --at"
        )
    return found


def _read_file(path: Path, read: Callable[..., T]) -> T:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BezoarError(f"{path}: cannot be read: {error.strerror}") from None
    return read(content, str(path))


def _read_answer(key: Key, peer: Peer, what: str, most: int, read: Callable[..., T]) -> T:
    """What an agent tells, which must be of that very agent."""
    return read(ask(key, peer, what, SECONDS, most), peer.name, peer.name)
