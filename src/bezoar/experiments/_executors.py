"""Executors for sweeps: processes on this machine, and the workers of a Dask cluster."""

import asyncio
import logging
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from threading import Lock, local
from typing import TYPE_CHECKING, Any

from bezoar._checks import whole
from bezoar._errors import BezoarError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

#: The environment variable that says how many threads a worker takes.
THREADS = "BEZOAR_THREADS"

#: Seconds to wait for a cluster's scheduler.
CONNECTING = "10s"

#: Seconds to wait until the scheduler tells how many workers there are.
TELLING = "5s"

#: What ``--on`` may be.
ALLOWED = "local:4 (processes) or dask:tls://HOST:8786 (a Dask scheduler)"


@contextmanager
def executor_on(
    where: str, threads: int | None = None
) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """The executor that a text such as ``local:4`` names, and how many workers it has now.

    Args:
        where: ``local:4`` for four processes, or ``dask:`` and the address of a Dask scheduler.
            Where it has TLS, Dask's own configuration says which certificate to show.
        threads: for each process on this machine; by default the cores are shared out. Workers of
            a cluster have settings of their own.
    """
    kind, _, rest = where.partition(":")
    if kind == "local" and rest.isdecimal() and 0 < len(rest) < 5 and int(rest):
        processes = Processes(int(rest), threads)
        try:
            yield processes, lambda: int(rest)
        finally:  # what is still being computed, as by a frozen process, is not needed any more
            processes.shutdown(wait=False, cancel_futures=True)
    elif kind == "dask" and rest:
        if threads is not None:
            raise BezoarError(
                f"workers: found {threads}, but those of a cluster have settings of their own; "
                f"set {THREADS} where they are started"
            )
        with _dask(rest) as client:
            # A process trains one group at a time, whatever the number of its threads.
            yield client.get_executor(), partial(_workers_of, client)
    else:
        raise BezoarError(f"on: expected {ALLOWED}, found {where!r}")


def _workers_of(client: Any) -> int:
    """How many workers a Dask cluster has; 0 as well if its scheduler does not tell."""
    try:
        return len(client.sync(client.scheduler.ncores, workers=None, callback_timeout=TELLING))
    except (OSError, TimeoutError):  # if it is gone for good, what was submitted fails
        return 0


class Processes(Executor):
    """Processes of this machine; one that dies is replaced when there is work for it.

    Args:
        count: how many.
        threads: for each of them; by default the cores are shared out.
    """

    def __init__(self, count: int, threads: int | None = None) -> None:
        from bezoar.training import available_cores

        self._max_workers = whole("count", count, 1)
        self._threads = threads or max(1, available_cores() // count)
        self._own, self._all, self._lock = local(), set[Any](), Lock()
        # Torch is imported once, by a server that the processes are forked from.
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["bezoar.experiments._advance"])
        # Each thread hands its work to a process of its own, and waits for the result.
        self._fronts = ThreadPoolExecutor(count, "bezoar-process")

    def submit(self, fn: Callable[..., Any], /, *given: Any, **named: Any) -> "Future[Any]":
        """Let a process call a function; both are sent by the usual pickling."""
        return self._fronts.submit(self._call, fn, given, named)

    def _call(self, *call: Any) -> Any:
        process, pipe = self._process()
        try:
            pipe.send(call)
            result, error = pipe.recv()
        except (EOFError, OSError):
            process.join()
            self._own.process = None
            raise BrokenExecutor(
                f"process {process.pid} ended with exit code {process.exitcode}"
            ) from None
        if error is not None:
            raise error
        return result

    def _process(self) -> Any:
        """The process of the calling thread, and the pipe to it."""
        if getattr(self._own, "process", None) is None:
            ours, theirs = self._context.Pipe()
            # The server that it is forked from has the environment that was there at its start.
            environment = {**os.environ, THREADS: str(self._threads)}
            process = self._context.Process(target=_serve, args=(theirs, environment))
            process.daemon = True
            with self._lock:
                process.start()
                self._all.add(process)
            theirs.close()
            self._own.process = process, ours
        return self._own.process

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, after their work is done if they are to be waited for."""
        if not wait:
            self._kill()
        self._fronts.shutdown(wait, cancel_futures=cancel_futures)
        self._kill()

    def __exit__(self, kind: Any, *_: Any) -> None:
        # After an error, such as Ctrl-C, nobody needs what is being computed.
        self.shutdown(wait=kind is None, cancel_futures=kind is not None)

    def _kill(self) -> None:
        with self._lock:
            for process in self._all:
                process.kill()


def _serve(pipe: "Connection", environment: Mapping[str, str]) -> None:
    """Answer calls until the other end is closed, as when its process has died."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's affair
    os.environ.update(environment)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            function, given, named = pipe.recv()
            answer: tuple[Any, Exception | None]
            try:
                answer = function(*given, **named), None
            except Exception as error:
                answer = None, error
            pipe.send(answer)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a logger from printing what is told in a sentence of our own."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _dask(address: str) -> Iterator[Any]:
    """A client of a Dask scheduler."""
    try:
        from distributed import Client, Security
        from distributed.comm.core import connect
    except ImportError:
        raise BezoarError(
            "on: sweeps on a cluster need Dask, and it is not installed here; "
            "'pip install bezoar[cluster]' installs it"
        ) from None
    shown = Security().get_connection_args("client")
    if address.startswith("tls:") and shown.get("ssl_context") is None:
        raise BezoarError(
            f"on: {address} wants to see a certificate, and none is known here; set "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY to the files"
        )

    async def reach() -> None:  # a client that reaches nobody would try to say goodbye for long
        connection = await connect(address, timeout=CONNECTING, **shown)
        await connection.close()

    try:
        with ThreadPoolExecutor(1) as aside:  # in a notebook, this thread has a loop of its own
            aside.submit(asyncio.run, reach()).result()
        client = Client(address, timeout=CONNECTING, set_as_default=False)
    except Exception as error:
        raise BezoarError(
            f"on: no Dask scheduler answers at {address} ({type(error).__name__}: {error}); "
            "'dask scheduler' starts one"
        ) from None
    with client, _quiet("distributed.client"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # a checkpoint is what it is
        yield client
