"""A network at two ranks of one core each against one process with two cores."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks._measure import Result, Row, tell
from benchmarks.agents import draw, make_task, read_network
from bezoar.agents._ports import free_ports
from bezoar.networks import shard_of, shard_owners
from bezoar.training import Engine, Ranks, Sharded, Workers

SIZE, RANKS = 100_000, 2

#: A rule by inner products, as most are.
RULE = "ios"


def shards() -> Result:
    """Seconds of an iteration on both sides, each in processes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        edges = draw(SIZE, Path(folder))
        tell("one process, a minute or two")
        [alone] = _processes(edges, 1)
        tell("two ranks, as long again")
        ranks = _processes(edges, RANKS)
    ratio = ranks[0]["seconds"] / alone["seconds"]
    detail = f"{ranks[0]['seconds']:.1f} against {alone['seconds']:.1f} s"
    memory = max(rank["memory"] for rank in ranks)
    rows = [
        Row("an iteration: two ranks ÷ one process", ratio, 1.3, "", detail),
        Row("peak memory of a rank", memory, None, " GB", f"one process: {alone['memory']:.1f} GB"),
        Row("exchange of messages", ranks[0]["moving"], None, " s", "part of the iteration"),
    ]
    about = f"{SIZE:,} agents, random and 8-regular, 8 MNIST images each, {RULE}, over loopback"
    return Result("shards", about, rows)


def _processes(edges: Path, count: int) -> list[dict[str, float]]:
    """What each of so many ranks found, which share the cores of this machine evenly."""
    [port] = free_ports(1)
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // count)
    command = [sys.executable, "-m", "benchmarks.shards", str(edges)]
    started = []
    for rank in range(count):
        own = cores[rank * share : (rank + 1) * share] or cores
        variables = {**os.environ, **common, "RANK": str(rank), "OWN": ",".join(map(str, own))}
        started.append(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True))
    found: list[dict[str, float]] = [json.loads(each.communicate()[0]) for each in started]
    return found


class _Timed(Ranks):
    """Ranks that know how long they exchanged messages."""

    seconds = 0.0

    def fill_halo(self, *what: Any) -> None:
        before = time.perf_counter()
        super().fill_halo(*what)
        self.seconds = time.perf_counter() - before


def measure(edges: Path) -> dict[str, float]:
    """The seconds of the second step, those of moving messages, and this process's memory in GB."""
    torch.set_num_threads(1)
    os.sched_setaffinity(0, map(int, os.environ["OWN"].split(",")))
    network, count = read_network(edges), int(os.environ["WORLD_SIZE"])
    with Workers() as workers, _Timed.joined() as ranks:
        if count == 1:
            engine = Engine(make_task(RULE, network, workers), iterations=10**9, every=10**9)
        else:
            shard = shard_of(network, shard_owners(network, count), ranks.number)
            task = make_task(RULE, network, workers, shard.members.tolist())
            exchanges = Sharded(task, ranks, shard)
            engine = Engine(task, iterations=10**9, every=10**9, exchanges=exchanges)
        state = engine.step(engine.start())  # this touches fresh memory
        ranks.sum(torch.zeros(1))
        before = time.perf_counter()
        engine.step(state)
        ranks.sum(torch.zeros(1))
        seconds = time.perf_counter() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        return {"seconds": seconds, "memory": peak, "moving": ranks.seconds}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
