"""From a hundred agents to a hundred thousand."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import torch

from benchmarks._measure import Result, Row, interleaved, milliseconds, ratio, tell
from benchmarks._settings import stepper
from bezoar import Network, aggregators, attacks, data
from bezoar.paper import RULES
from bezoar.training import Engine, Run, SoftmaxTask, Workers

if TYPE_CHECKING:
    from torch import Tensor

SIZES = (100, 1_000, 10_000, 100_000)
IMAGES = 8
DEGREE = 8

#: A step may take so many times as long as gathering every agent's inputs.
LIMITS = {"weighted_mean": 3.0, "rfa": 10.0, "lfighter": 10.0}
OTHERS = 7.0


def gathered() -> Result:
    """A step on 10,000 agents over gathering every agent's inputs, in turns."""
    size = 10_000
    with tempfile.TemporaryDirectory() as folder:
        network = read_network(draw(size, Path(folder)))
    rows = []
    with Workers() as workers:
        for rule in RULES:
            tell(rule)
            engine = _engine(rule, network, workers)
            sides = {"step": stepper(engine), "gather": _gatherer(network, workers)}
            seconds = interleaved(sides, rounds=7, warm=2)
            each = {name: 1000 * milliseconds(found) / size for name, found in seconds.items()}
            rows.append(
                Row(
                    f"{rule}: step ÷ gathering",
                    ratio(seconds, "step", "gather"),
                    LIMITS.get(rule, OTHERS),
                    "",
                    f"{each['step']:.0f} against {each['gather']:.0f} µs an agent",
                )
            )
    about = "10,000 agents, 8-regular, 8 MNIST images each: a step ÷ gathering the nine inputs"
    return Result("gathered", about, rows)


def agents() -> Result:
    """Time per agent and step at 100,000 agents over that at 1,000, and the memory it takes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        graphs = {size: draw(size, Path(folder)) for size in SIZES}
        for number, rule in enumerate(RULES, start=1):
            tell(f"{rule}, {number} of {len(RULES)} rules, a minute or two each")
            # A process each, so that the peak of memory is this rule's at this size.
            found = {size: _elsewhere(rule, graphs[size]) for size in SIZES}
            each = {size: found[size]["seconds"] / size * 1e6 for size in SIZES}
            detail = ", ".join(f"{size:,}: {each[size]:.1f} µs" for size in SIZES)
            growth = each[100_000] / each[1_000]
            rows.append(Row(f"{rule}: per agent, 100,000 ÷ 1,000", growth, 1.5, "", detail))
            rows.append(Row(f"{rule}: peak memory", found[100_000]["memory"], 12, " GB"))
    return Result(
        "agents", "random 8-regular networks, each agent with 8 MNIST images, one run", rows
    )


def draw(size: int, folder: Path) -> Path:
    """A random network as a file of edges: drawing a large one takes longer than a step on it."""
    path = folder / f"{size}.npy"
    np.save(path, np.array(nx.random_regular_graph(DEGREE, size, seed=1).edges))
    return path


def read_network(edges: Path) -> Network:
    """The network in a file of edges; one agent in a hundred is poisoned."""
    graph = nx.Graph(np.load(edges).tolist())
    return Network(graph, range(0, len(graph), 100), name="random_regular")


def make_task(
    rule: str, network: Network, workers: Workers, members: Sequence[int] | None = None
) -> SoftmaxTask:
    """Softmax regression with a few images an agent."""
    mnist, size = data.mnist(), network.agents
    order = np.random.default_rng(0).integers(0, len(mnist.train), size=size * IMAGES)
    partition = data.Partition(order, np.arange(size + 1) * IMAGES)
    run = Run(network, aggregators.create(rule), attacks.create("label_flip"))
    return SoftmaxTask(mnist, partition, [run], workers, members=members)


def _engine(rule: str, network: Network, workers: Workers) -> Engine:
    return Engine(make_task(rule, network, workers), iterations=10**9, every=10**9)


def _gatherer(network: Network, workers: Workers) -> Callable[[], None]:
    """Copies every agent's nine inputs of 7,850 numbers into memory that is used again."""
    size, some = network.agents, 16
    index = torch.tensor([[agent, *network.neighbours(agent)] for agent in range(size)])
    messages = torch.randn(size, 7_850)
    share = -(-size // workers.count)
    held: list[Tensor] = [torch.empty(some * index.shape[1], 7_850) for _ in range(workers.count)]

    def gather(worker: int) -> None:
        stop = min((worker + 1) * share, size)
        for first in range(worker * share, stop, some):
            rows = index[first : min(first + some, stop)].flatten()
            torch.index_select(messages, 0, rows, out=held[worker][: len(rows)])

    def work() -> None:
        workers.map(gather, range(workers.count))

    return work


def _elsewhere(rule: str, graph: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.agents", rule, str(graph)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(result.stdout)
    return found


def measure(rule: str, edges: Path) -> dict[str, float]:
    """The median seconds of a step, and the peak memory of this process in GB."""
    network = read_network(edges)
    with Workers() as workers:
        step = stepper(_engine(rule, network, workers))
        rounds = 10 if network.agents <= 1_000 else 3 if network.agents <= 10_000 else 2
        seconds = []
        for _ in range(rounds):
            before = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    timed = sorted(seconds[1:])  # the first step touches fresh memory
    return {"seconds": timed[len(timed) // 2], "memory": peak}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
