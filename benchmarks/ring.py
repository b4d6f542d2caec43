"""Rounds of real agents: ten processes on a ring, over TLS, beside bare TLS and plain gloo."""

import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, distributed

from benchmarks._measure import Result, Row
from bezoar.agents import Key, Neighbours, Offer, Peer, make_key

AGENTS = 10

#: Numbers in a message, and rounds: softmax regression on MNIST, and a ResNet18.
MESSAGES = {"31 KB": (7_850, 40), "44.8 MB": (11_200_000, 5)}

#: What the benchmark writes beside its processes.
FOUND = "found.json"

#: Bytes that are sent and received at a time over bare TLS.
PIECE = 1 << 18

#: Each agent's key, the port of the agent, and that of its bare TLS.
Keys = dict[str, tuple[Key, int, int]]


def ring() -> Result:
    """A round of each in turns, in the same ten processes."""
    with tempfile.TemporaryDirectory() as folder:
        # Processes are forked after torch is imported, and before gRPC is.
        command = [sys.executable, "-m", "benchmarks.ring", folder]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "GRPC_VERBOSITY": "NONE"}
        subprocess.run(command, check=True, env=os.environ | threads)
        found = json.loads((Path(folder) / FOUND).read_text())
    rows = []
    for name, seconds in found.items():
        own, bare, plain = (1000 * statistics.median(found) for found in seconds.values())
        detail = f"bare TLS {bare:.1f}, gloo {plain:.1f} ms"
        short = name == "31 KB"
        rows.append(Row(f"{name}: a round", own, 25 if short else None, " ms", detail))
        for text, of, by, limit in (
            ("a round ÷ gloo's", "agents", "gloo", 1.5),
            ("a round ÷ bare TLS", "agents", "tls", None),
            ("bare TLS ÷ gloo", "tls", "gloo", None),
        ):
            pairs = zip(seconds[of], seconds[by], strict=True)
            ratio = statistics.median(a / b for a, b in pairs)
            rows.append(Row(f"{name}: {text}", ratio, None if short else limit))
    about = "ten agents on a ring, each exchanges with two neighbours over TLS; gloo has no TLS"
    return Result("ring", about, rows)


def _start(folder: Path) -> None:
    """Fork the processes, and wait for them."""
    from bezoar.agents._ports import free_ports

    ports = free_ports(2 * AGENTS)
    keys = {str(n): (make_key(str(n), days=1), ports[n], ports[AGENTS + n]) for n in range(AGENTS)}
    for name, (key, *_) in keys.items():
        (folder / f"{name}.pem").write_bytes(key.private + key.certificate)
    children = []
    for rank in range(AGENTS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _be(rank, keys, folder)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        sys.exit(f"ring: processes ended with the codes {codes}")


def _be(rank: int, keys: Keys, folder: Path) -> None:
    """One of the processes; the first writes what was found."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/gloo", rank=rank, world_size=AGENTS
    )
    others = [(rank - 1) % AGENTS, (rank + 1) % AGENTS]
    bare = _BareTLS(rank, keys, others, folder)
    found = {}
    for name, (length, rounds) in MESSAGES.items():
        own = _own(rank, keys, others, length)
        sides = {
            "agents": _by_agents(own, rank, length),
            "tls": bare.exchange(length),
            "gloo": _by_gloo(rank, others, length),
        }
        for work in sides.values():
            work()
        found[name] = {side: list[float]() for side in sides}
        for turn in range(rounds):
            order = list(sides.items())
            for side, work in order if turn % 2 == 0 else reversed(order):
                found[name][side].append(_timed(work))
        distributed.barrier()
        own.close()
        distributed.barrier()  # nobody asks those who still answer for the size before
    if rank == 0:
        (folder / FOUND).write_text(json.dumps(found))
    distributed.barrier()


def _timed(work: Callable[[], None]) -> float:
    """The seconds that the slowest process takes."""
    distributed.barrier()
    before = time.perf_counter()
    work()
    seconds = torch.tensor(time.perf_counter() - before)
    distributed.all_reduce(seconds, distributed.ReduceOp.MAX)
    return float(seconds)


def _own(rank: int, keys: Keys, others: list[int], length: int) -> Neighbours:
    key, port, _ = keys[str(rank)]
    peers = [
        Peer(str(n), keys[str(n)][0].certificate, f"127.0.0.1:{keys[str(n)][1]}") for n in others
    ]
    spec = length.to_bytes(32, "little")
    address, dtype = f"127.0.0.1:{port}", np.dtype("<f4")
    return Neighbours(key, address, peers, spec, dtype, length, patience=30.0, wait=120.0)


def _by_agents(own: Neighbours, rank: int, length: int) -> Callable[[], None]:
    offer, numbers = Offer(np.full(length, rank, np.float32)), iter(range(1, 10**9))

    def work() -> None:
        heard, _ = own.exchange(next(numbers), offer)
        assert len(heard) == 2, own.told()

    return work


class _BareTLS:
    """TLS by the standard library, with nothing around it: what no protocol over TLS can undercut.

    A neighbour that sends a byte is sent as many bytes as a message has.
    """

    def __init__(self, rank: int, keys: Keys, others: list[int], folder: Path) -> None:
        self._content = memoryview(b"")
        known = "".join(keys[str(n)][0].certificate.decode() for n in others)
        contexts = {}
        for side in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
            contexts[side] = context = ssl.SSLContext(side)
            context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
            context.load_cert_chain(folder / f"{rank}.pem")
            context.load_verify_locations(cadata=known)
        listening = socket.create_server(("127.0.0.1", keys[str(rank)][2]))
        listening = contexts[ssl.PROTOCOL_TLS_SERVER].wrap_socket(listening, server_side=True)
        for _ in others:
            threading.Thread(target=self._answer, args=(listening,), daemon=True).start()
        distributed.barrier()
        self._connections = [
            contexts[ssl.PROTOCOL_TLS_CLIENT].wrap_socket(
                socket.create_connection(("127.0.0.1", keys[str(n)][2]))
            )
            for n in others
        ]

    def _answer(self, listening: socket.socket) -> None:
        connection, _ = listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while connection.recv(1):
            for start in range(0, len(self._content), PIECE):
                connection.sendall(self._content[start : start + PIECE])

    def exchange(self, length: int) -> Callable[[], None]:
        self._content = memoryview(bytes(4 * length))
        received = [memoryview(bytearray(4 * length)) for _ in self._connections]
        pool = ThreadPoolExecutor(len(received))

        def work() -> None:
            list(pool.map(_receive, self._connections, received))

        return work


def _receive(connection: socket.socket, into: memoryview) -> None:
    connection.sendall(b"?")
    done = 0
    while done < len(into):
        done += connection.recv_into(into[done : done + PIECE])


def _by_gloo(rank: int, others: list[int], length: int) -> Callable[[], None]:
    own = torch.full((length,), float(rank))
    received: list[Tensor] = [torch.empty(length) for _ in others]

    def work() -> None:
        pending = [distributed.isend(own, other) for other in others]
        pending += [
            distributed.irecv(into, other) for into, other in zip(received, others, strict=True)
        ]
        for each in pending:
            if each is not None:
                each.wait()

    return work


if __name__ == "__main__":
    _start(Path(sys.argv[1]))
