"""Rounds of real agents: ten processes on a ring, over TLS, beside plain gloo."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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

Keys = dict[str, tuple[Key, int]]


def ring() -> Result:
    """A round of both in turns, in the same ten processes."""
    with tempfile.TemporaryDirectory() as folder:
        # Processes are forked after torch is imported, and before gRPC is.
        command = [sys.executable, "-m", "benchmarks.ring", folder]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "GRPC_VERBOSITY": "NONE"}
        subprocess.run(command, check=True, env=os.environ | threads)
        found = json.loads((Path(folder) / FOUND).read_text())
    rows = []
    for name, seconds in found.items():
        own, plain = (1000 * statistics.median(seconds[side]) for side in ("agents", "gloo"))
        pairs = zip(seconds["agents"], seconds["gloo"], strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        detail = f"{own:.1f} against {plain:.1f} ms"
        short = name == "31 KB"
        rows.append(Row(f"{name}: a round", own, 25 if short else None, " ms", detail))
        rows.append(Row(f"{name}: a round ÷ gloo's", ratio, None if short else 1.5))
    about = "ten agents on a ring, each exchanges with two neighbours over TLS; gloo has no TLS"
    return Result("ring", about, rows)


def _start(folder: Path) -> None:
    """Fork the processes, and wait for them."""
    from bezoar.agents._ports import free_ports

    ports = free_ports(AGENTS)
    keys = {str(n): (make_key(str(n), days=1), port) for n, port in enumerate(ports)}
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
    found = {}
    for name, (length, rounds) in MESSAGES.items():
        own = _own(rank, keys, others, length)
        sides = {"agents": _over_tls(own, rank, length), "gloo": _by_gloo(rank, others, length)}
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
    key, port = keys[str(rank)]
    peers = [
        Peer(str(n), keys[str(n)][0].certificate, f"127.0.0.1:{keys[str(n)][1]}") for n in others
    ]
    spec = length.to_bytes(32, "little")
    address, dtype = f"127.0.0.1:{port}", np.dtype("<f4")
    return Neighbours(key, address, peers, spec, dtype, length, patience=30.0, wait=120.0)


def _over_tls(own: Neighbours, rank: int, length: int) -> Callable[[], None]:
    offer, numbers = Offer(np.full(length, rank, np.float32)), iter(range(1, 10**9))

    def work() -> None:
        heard, _ = own.exchange(next(numbers), offer)
        assert len(heard) == 2, own.told()

    return work


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
