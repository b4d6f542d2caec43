"""From a hundred agents to a hundred thousand."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._measure import Result, Row, tell
from bezoar.experiments._paper import RULES

SIZES = (100, 1_000, 10_000, 100_000)
IMAGES = 8
DEGREE = 8


def agents() -> Result:
    """Time per agent and step at 100,000 agents over that at 1,000, and the memory it takes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        graphs = {size: _draw(size, Path(folder)) for size in SIZES}
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


def _draw(size: int, folder: Path) -> Path:
    """A random network as a file of edges: drawing a large one takes longer than a step on it."""
    import networkx as nx
    import numpy as np

    path = folder / f"{size}.npy"
    np.save(path, np.array(nx.random_regular_graph(DEGREE, size, seed=1).edges))
    return path


def _elsewhere(rule: str, graph: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.agents", rule, str(graph)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(result.stdout)
    return found


def measure(rule: str, edges: Path) -> dict[str, float]:
    """The median seconds of a step, and the peak memory of this process in GB."""
    import networkx as nx
    import numpy as np

    from bezoar import Network, aggregators, attacks, data, training

    graph = nx.Graph(np.load(edges).tolist())
    size = len(graph)
    network = Network(graph, range(0, size, 100), name="random_regular")
    mnist = data.mnist()
    order = np.random.default_rng(0).integers(0, len(mnist.train), size=size * IMAGES)
    partition = data.Partition(order, np.arange(size + 1) * IMAGES)
    run = training.Run(network, aggregators.create(rule), attacks.create("label_flip"))
    problem = training.Problem(mnist, partition, 10**9, 10**9, ())
    with training.Workers() as workers:
        engine = training.Engine(problem, [run], workers)
        state = engine.start()
        rounds = 10 if size <= 1_000 else 3 if size <= 10_000 else 2
        seconds = []
        for _ in range(rounds):
            before = time.perf_counter()
            state = engine.step(state)
            seconds.append(time.perf_counter() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    timed = sorted(seconds[1:])  # the first step touches fresh memory
    return {"seconds": timed[len(timed) // 2], "memory": peak}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
