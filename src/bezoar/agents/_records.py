"""What an agent writes down, and tells those who may ask.

    status.json           where it stands, written at least every few seconds of training
    metrics.csv           a line for every measurement
    events.jsonl          a line for every miss and jump
    result.safetensors    measurements, status and the final model, at the end

None of them can run code when it is read.
"""

import csv
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field, TypeAdapter, ValidationError
from safetensors.torch import save
from torch import Tensor
from typing_extensions import TypedDict  # pydantic reads no other before Python 3.12

from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar._options import first_problem
from bezoar.agents._keys import one_line
from bezoar.agents._neighbours import Event, Neighbours
from bezoar.experiments import versions
from bezoar.networks import Network
from bezoar.training import OF_AGENTS, Checkpoint, History

if TYPE_CHECKING:
    from bezoar.agents._agent import Setting

#: The version of these files.
FORMAT = 1

STATUS, METRICS, EVENTS, RESULT = "status.json", "metrics.csv", "events.jsonl", "result.safetensors"

#: Seconds between two writings of the status.
PAUSE = 2.0

#: Events told in a status.
TOLD = 20

MEASURED = ("accuracy", "test_loss")

#: The name of the final model among the tensors of a result.
MODELS = "models"

_COLUMNS = ("iteration", *MEASURED, "seconds", "bytes_sent", "bytes_received", "misses")

#: A text that others may have written, in one line.
Line = Annotated[str, Field(pattern=r"^\P{Cc}*$")]


class Link(TypedDict):
    """What a status tells of a neighbour: where it is, and in how many rounds it was heard."""

    address: Line
    heard: int
    last: int
    misses: dict[Line, int]


class Status(TypedDict):
    """Where an agent stands."""

    name: Line
    spec: str
    state: Literal["training", "finished"]
    round: int
    rounds: int
    accuracy: float | None
    test_loss: float | None
    seconds: float
    resumed_after: int
    bytes_sent: int
    bytes_received: int
    misses: int
    jumps: int
    own_data: bool
    peers: dict[Line, Link]
    events: list[dict[str, Any]]


_STATUS = TypeAdapter(Status)


def read_status(content: bytes | str, source: str, name: str | None = None) -> Status:
    """The status in some bytes, which may come from anybody.

    Args:
        content: the bytes.
        source: where they are from, for errors.
        name: whose status it must be; by default anybody's.

    Raises:
        BezoarError: where there is none.
    """
    try:
        status = _STATUS.validate_json(content)
    except ValidationError as error:
        problem = one_line(first_problem(error))
        raise BezoarError(f"status: {source}: expected that of an agent; {problem}") from None
    if name not in (None, status["name"]):
        raise BezoarError(f"status: {source}: expected that of {name}, found {status['name']}'s")
    return status


class Records:
    """The records of one agent.

    Args:
        setting: what the agent is told.
        network: the network that it is in.
        spec: the hash of what is trained.

    Attributes:
        documents: what those who may ask are told, by name.
    """

    def __init__(self, setting: "Setting", network: Network, spec: bytes) -> None:
        self._setting, self._network, self._spec = setting, network, spec
        self._folder = setting.folder
        self._neighbours: Neighbours | None = None
        self._round, self._measured = 0, list[dict[str, float]]()
        self._history: History | None = None
        self._began, self._resumed, self._written = time.time(), 0, 0.0
        self.documents: Mapping[str, Callable[[], bytes]] = {
            "status": lambda: _json(self.status()),
            "results": self.results,
        }

    def begin(self, neighbours: Neighbours) -> None:
        """The agent listens."""
        self._neighbours = neighbours
        self.write_status()

    def resume(self, start: Checkpoint | None) -> None:
        """The agent begins, or goes on from a checkpoint."""
        if start is not None:
            self._round = self._resumed = start.iteration
            self._measured = _rows(start.measured)
        self._rewrite_metrics()

    def watching(self, watch: Callable[[Event], Any] | None) -> Callable[[Event], None]:
        """What notes an event and tells it on."""

        def note(event: Event) -> None:
            with (self._folder / EVENTS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(event)) + "\n")
            if watch is not None:
                watch(event)

        return note

    def advanced(self, checkpoint: Checkpoint) -> None:
        """The agent has done another iteration."""
        self._round = checkpoint.iteration
        measured_now = checkpoint.measured[-1][0] == self._round
        if measured_now:
            self._measured = self._measured + _rows(checkpoint.measured[len(self._measured) :])
            self._append_metrics(self._measured[-1])
        if measured_now or time.monotonic() - self._written > PAUSE:
            self.write_status()

    def finish(self, history: History) -> None:
        """The agent has done all iterations."""
        self._history = history
        self._measured = [
            {"iteration": int(k), **{name: float(history.agents[name][n, 0]) for name in MEASURED}}
            for n, k in enumerate(history.iterations)
        ]
        self.write_status()
        write_whole(self._folder / RESULT, self.results())

    def status(self) -> Status:
        """Where the agent stands."""
        links, setting = self._neighbours, self._setting
        last = self._measured[-1] if self._measured else {}
        peers, events = ({}, []) if links is None else links.told()
        misses = sum(tally.misses.total() for tally in peers.values())
        return {
            "name": setting.name,
            "spec": self._spec.hex(),
            "state": "training" if self._history is None else "finished",
            "round": self._round,
            "rounds": setting.spec.iterations,
            "accuracy": _finite(last.get("accuracy")),
            "test_loss": _finite(last.get("test_loss")),
            "seconds": round(time.time() - self._began, 3),
            "resumed_after": self._resumed,
            "bytes_sent": 0 if links is None else links.sent,
            "bytes_received": 0 if links is None else links.received,
            "misses": misses,
            "jumps": 0 if links is None else links.jumps,
            "own_data": setting.data is not None,
            "peers": {
                name: {
                    "address": setting.peers[name].address,
                    "heard": tally.rounds,
                    "last": tally.last,
                    "misses": dict(tally.misses),
                }
                for name, tally in peers.items()
            },
            "events": [asdict(event) for event in events[-TOLD:]],
        }

    def write_status(self) -> None:
        """Write the status."""
        write_whole(self._folder / STATUS, _json(self.status()))
        self._written = time.monotonic()

    def results(self) -> bytes:
        """Everything measured so far, and the final model when there is one, as safetensors."""
        measured = self._measured
        tensors = {
            name: torch.tensor([row[name] for row in measured], dtype=torch.float64)
            for name in MEASURED
        }
        iterations = [row["iteration"] for row in measured]
        tensors["iterations"] = torch.tensor(iterations, dtype=torch.int64)
        if self._history is not None:
            tensors[MODELS] = self._history.models.contiguous()
            tensors |= {name: each.contiguous() for name, each in self._history.buffers.items()}
        metadata = {
            "format": str(FORMAT),
            "name": self._setting.name,
            "versions": json.dumps(versions()),
            "status": json.dumps(self.status()),
            "agreement": self._spec.hex(),
        }
        return save(tensors, metadata)

    def _append_metrics(self, found: Mapping[str, float]) -> None:
        status = dict(self.status())
        with (self._folder / METRICS).open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _COLUMNS)
            writer.writerow({**{name: status[name] for name in _COLUMNS[3:]}, **found})

    def _rewrite_metrics(self) -> None:
        """Write the header, and keep the lines up to the checkpoint: the rest is measured again."""
        path = self._folder / METRICS
        lines = path.read_bytes().splitlines(keepends=True)[1:] if path.exists() else []
        # The last line may have been cut off by the end of the process.
        whole = [line for line in lines if line.endswith(b"\n")]
        kept = [line for line in whole if int(line.partition(b",")[0]) <= self._round]
        write_whole(path, ",".join(_COLUMNS).encode() + b"\r\n" + b"".join(kept))


def _rows(measured: Sequence[tuple[int, Mapping[str, Tensor]]]) -> list[dict[str, float]]:
    return [
        {"iteration": k, **{name: float(values[OF_AGENTS + name][0, 0]) for name in MEASURED}}
        for k, values in measured
    ]


def _finite(value: float | None) -> float | None:
    """A number as JSON has it."""
    return value if value is not None and isfinite(value) else None


def _json(document: Status) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()
