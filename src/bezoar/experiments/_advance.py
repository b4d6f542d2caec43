"""What a worker does: train a group of runs for a while.

:func:`advance` is given and returns plain data, so any ``concurrent.futures.Executor`` can run it,
on this machine or on another. Environment variables say what each worker decides for itself:

- ``BEZOAR_DEVICE``: the torch device it computes on, whatever the specs say;
- ``BEZOAR_THREADS``: how many threads it takes; by default one a core.
"""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar.experiments._executors import THREADS
from bezoar.experiments._identity import versions
from bezoar.experiments._plan import reason_for
from bezoar.experiments._prepare import Prepared, make_engine, prepare
from bezoar.experiments._provenance import machine
from bezoar.experiments._spec import RunSpec
from bezoar.training import (
    Checkpoint,
    CheckpointError,
    Engine,
    History,
    Workers,
    check_device,
)

#: The environment variable that says what device a worker computes on.
DEVICE = "BEZOAR_DEVICE"

#: A trained model as plain data: its parameters and buffers by name.
Arrays = Mapping[str, NDArray[Any]]


def advance(
    specs: Mapping[str, Mapping[str, Any]],
    checkpoint: bytes | None,
    seconds: float,
    trained: Arrays | None = None,
    expected: Mapping[str, str] | None = None,
    attempt: str = "",
) -> dict[str, Any]:
    """Train runs together for about this many seconds, one iteration at least.

    Relative paths in the specs are relative to the worker's working folder.

    Args:
        specs: what to run, as documents, by the keys that the driver knows the runs by.
        checkpoint: where their training stands; ``None`` at its start.
        seconds: how long to train.
        trained: the final model of the run that they start from, if they need one.
        expected: the driver's versions of what computes.
        attempt: differs in every call, because some executors take calls with equal arguments for
            one call.

    Returns:
        Who computed, and how long it took, with one of

        - ``"checkpoint"``: where training stands now;
        - ``"histories"``: it is done, and this was measured, for :func:`unpack`;
        - ``"unusable"``: why training cannot go on from the checkpoint;
        - ``"refused"``: why these runs cannot be computed by this worker;
        - ``"failed"``: why their training failed.
    """
    with _ALONE:
        began = time.monotonic()
        try:
            start = None if checkpoint is None else Checkpoint.from_bytes(checkpoint)
            engine = _engine(specs, trained, expected or versions())
            return _answer(began, **_train(engine, start, seconds))
        except CheckpointError as error:
            return _answer(began, unusable=str(error))
        except _RefusedError as error:
            return _answer(began, refused=str(error))
        except Exception as error:  # which is told as a text: its class may be known here alone
            return _answer(began, failed=reason_for(error))


def unpack(told: Mapping[str, Any]) -> History:
    """The history that a worker packed."""
    return History(
        told["iterations"],
        dict(told["metrics"]),
        torch.tensor(told["models"]),
        {name: torch.tensor(values) for name, values in told["buffers"].items()},
        dict(told["details"]),
        dict(told["agents"]),
        {
            k: csr_array(tuple(parts), shape=tuple(shape))
            for k, (shape, *parts) in told["listening"].items()
        },
    )


@dataclass(frozen=True)
class _Held:
    """What a worker keeps between slices, because the next one is often of the same group."""

    what: tuple[Any, ...]
    engine: Engine
    workers: Workers


#: A process trains one group at a time, whatever the number of threads that call it.
_ALONE = Lock()

_held: _Held | None = None


class _RefusedError(Exception):
    """This worker cannot compute what the driver could prepare."""


def _engine(
    specs: Mapping[str, Mapping[str, Any]], trained: Arrays | None, expected: Mapping[str, str]
) -> Engine:
    """The engine that trains the runs, if they are the same here as at the driver."""
    global _held
    device = os.environ.get(DEVICE)
    what = (*specs, device)
    if _held is None or _held.what != what:
        if _held is not None:
            _held.workers.close()
            _held = None  # before memory is taken for another group
        try:
            if device is not None:
                check_device(device)
            runs, workers = _prepared(specs, expected), Workers(_threads())
        except Exception as error:
            raise _RefusedError(reason_for(error)) from error
        model = None if trained is None else {n: torch.tensor(a) for n, a in trained.items()}
        _held = _Held(what, make_engine(runs, workers, model, device), workers)
    return _held.engine


def _prepared(
    specs: Mapping[str, Mapping[str, Any]], expected: Mapping[str, str]
) -> list[Prepared]:
    here = versions()
    if different := [name for name in expected if here.get(name) != expected[name]]:
        told = ", ".join(f"{n} {here.get(n, 'missing')}, not {expected[n]}" for n in different)
        raise BezoarError(f"versions: those of the worker differ from the driver's: {told}")
    runs = []
    for key, document in specs.items():
        run = prepare(RunSpec.read(document))
        if run.key != key:
            raise BezoarError(
                f"run: {key} is {run.key} at the worker; its data, network, files or own code "
                "differ from the driver's"
            )
        runs.append(run)
    return runs


def _threads() -> int | None:
    told = os.environ.get(THREADS)
    if told is None:
        return None
    return whole(THREADS, int(told) if told.isdecimal() else told, 1)


class _PauseError(Exception):
    """Ends a slice of training. Its arguments say where training stands."""


def _train(engine: Engine, start: Checkpoint | None, seconds: float) -> dict[str, Any]:
    before = time.monotonic()

    def keep(checkpoint: Checkpoint) -> None:
        trained = time.monotonic() - before
        if trained >= seconds and checkpoint.iteration < engine.iterations:
            raise _PauseError(checkpoint.iteration, trained, checkpoint.to_bytes())

    try:
        histories = engine.train(start=start, keep=keep)
    except _PauseError as pause:
        iteration, trained, content = pause.args
        return {"iteration": iteration, "trained": trained, "checkpoint": content}
    return {
        "iteration": engine.iterations,
        "trained": time.monotonic() - before,
        "histories": _packed(histories, str(engine.task.device)),
    }


def _packed(histories: Sequence[History], device: str) -> list[dict[str, Any]]:
    where = {"machine": machine(), "device": device, "worker": _name()}
    return [
        {
            "iterations": history.iterations,
            "metrics": history.metrics,
            "models": history.models.numpy(),
            "buffers": {name: values.numpy() for name, values in history.buffers.items()},
            "details": {**history.details, **where},
            "agents": dict(history.agents),
            "listening": {
                k: (matrix.shape, matrix.data, matrix.indices, matrix.indptr)
                for k, matrix in history.listening.items()
            },
        }
        for history in histories
    ]


def _answer(began: float, **told: Any) -> dict[str, Any]:
    return {"worker": _name(), "seconds": time.monotonic() - began, **told}


def _name() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"
