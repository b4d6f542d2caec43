"""``python -m benchmarks.advisor``: is the advisor's advice good on networks it has not seen?

Every case is a network, a number of poisoned agents and a partition, which the advisor is told,
and places of the poisoned agents and an attack, which it is not told. In every case all rules are
trained in full, and what the recommended rule lost against the best one is compared with what
simpler ways to choose would have lost. Ways that learn from other networks never see the family
that they are tried on. The advisor has learned from no network: it sees the one that it is asked
about.

What is in the files of results already is not computed again.
"""

import csv
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np

from bezoar import Network, advise, data, networks, theory
from bezoar.advice import Scenario
from bezoar.advice._candidates import candidates
from bezoar.advice._pilots import train_pilots

#: The accuracy of every rule in every case, and what the advisor said of every case.
RESULTS, ADVICE = Path("docs/results/advisor.csv"), Path("docs/results/advice.csv")

PARTITIONS = ("iid", "dirichlet:alpha=0.3", "by_class")

#: Attacks, the last of which the advisor never tries.
ATTACKS = ("label_flip", "dynamic_label_flip", "random_labels", "targeted")

#: Where poisoned agents sit, in turn from case to case.
PLACES = ("random", "betweenness")

#: The share of agents that is poisoned.
SHARE = 0.1

#: Seconds that the advisor has on a network, and on one of many agents.
BUDGET, LONG_BUDGET, MANY_AGENTS = 15.0, 60.0, 100

#: What "in full" means.
ITERATIONS, SAMPLES = 300, 6_000

#: A choice that loses no more than this is a good one.
GOOD = 0.02


def _geometric(seed: int, agents: int) -> nx.Graph:
    radius = 1.5 * np.sqrt(np.log(agents) / (np.pi * agents))
    graph = nx.random_geometric_graph(agents, radius, seed=seed)
    return _connected(graph)


def _connected(graph: nx.Graph) -> nx.Graph:
    """The graph with a link from each part to the next."""
    graph = nx.convert_node_labels_to_integers(graph)
    parts = [min(part) for part in nx.connected_components(graph)]
    graph.add_edges_from(pairwise(parts))
    return graph


def _tree(seed: int, agents: int) -> nx.Graph:
    """A random tree with a few links more."""
    graph = nx.random_labeled_tree(agents, seed=seed)
    rng = np.random.default_rng(seed)
    graph.add_edges_from(rng.choice(agents, (agents // 5, 2), replace=True).tolist())
    graph.remove_edges_from(nx.selfloop_edges(graph))
    return graph


#: Sizes of the networks of a family.
SIZES = (10, 12, 16, 20, 24, 30, 40, 60)

FAMILIES: dict[str, Callable[[int, int], nx.Graph]] = {
    "erdos_renyi": lambda seed, n: _connected(nx.gnp_random_graph(n, 5 / n, seed=seed)),
    "small_world": lambda seed, n: nx.connected_watts_strogatz_graph(n, 4, 0.2, seed=seed),
    "scale_free": lambda seed, n: nx.barabasi_albert_graph(n, 2, seed=seed),
    "geometric": _geometric,
    "tree": _tree,
    "communities": lambda seed, n: _connected(
        nx.planted_partition_graph(4, n // 4 + 1, min(1.0, 12 / n), 0.4 / n, seed=seed)
    ),
    "torus": lambda seed, n: nx.grid_2d_graph(3 + seed % 3, max(3, n // 4), periodic=True),
}


def all_networks() -> Iterator[tuple[str, str, Network]]:
    """Family, name and network, with nobody poisoned."""
    for name in ("two_castle", "line", "fan"):
        for agents in (10, 20):
            made = networks.create(name, agents=agents)
            yield "paper", f"{name}-{agents}", made.with_poisoned(())
    for family, draw in FAMILIES.items():
        for seed, agents in enumerate(SIZES):
            graph = nx.convert_node_labels_to_integers(draw(seed, agents))
            yield family, f"{family}-{agents}", Network(graph)
    yield (
        "large",
        "small_world-200",
        Network(nx.connected_watts_strogatz_graph(200, 6, 0.1, seed=9)),
    )
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, 20, periodic=True))
    yield "large", "torus-200", Network(grid)


class Key(NamedTuple):
    """What tells cases apart."""

    family: str
    network: str
    partition: str
    attack: str
    placement: str
    seed: int


#: The accuracy of every rule in a case.
Accuracies = dict[str, float]


class Result(NamedTuple):
    """What a rule did in one case."""

    key: Key
    rule: str
    accuracy: float


def poisoned_of(network: Network) -> int:
    """How many agents are poisoned."""
    return max(1, round(SHARE * network.agents))


def cases(name: str, network: Network) -> Iterator[Scenario]:
    """For each partition, a scenario that the advisor does not know; drawn from the name."""
    many, drawn = poisoned_of(network), zlib.crc32(name.encode())
    for number, partition in enumerate(PARTITIONS):
        rng = np.random.default_rng([drawn, number])
        placement = PLACES[(drawn + number) % len(PLACES)]
        placed = networks.place(network, many, placement, int(rng.integers(10_000, 1 << 30)))
        attack = str(rng.choice(ATTACKS))
        yield Scenario(placed, placement, partition, attack, int(rng.integers(10_000, 1 << 30)))


def train(path: Path) -> None:
    """Train every rule in every case, in full, unless the file has it."""
    done = {(row.key.network, row.key.partition, row.rule) for row in read_results(path)}
    mnist = data.mnist()
    drawn = np.random.default_rng(0).permutation(len(mnist.train))[:SAMPLES]
    full = replace(mnist, train=mnist.train[drawn], train_labels=mnist.train_labels[drawn])
    for family, name, network in all_networks():
        possible, _ = candidates(network, [poisoned_of(network)])
        for case in cases(name, network):
            rules = {
                text: rule
                for text, rule in possible.items()
                if (name, case.partition, text) not in done
            }
            if rules:
                began = time.monotonic()
                accuracy, _ = train_pilots(rules, [case], full, ITERATIONS, began + 1e6, times=1)
                key = Key(family, name, case.partition, case.attack, case.placement, case.seed)
                found = zip(rules, accuracy[:, 0].round(5), strict=True)
                write(path, [*Key._fields, "rule", "accuracy"], [[*key, *row] for row in found])
                tell(f"{name} {case.partition}", began)


def ask(path: Path) -> None:
    """Ask the advisor about every network and partition, unless the file has its answer."""
    done = read_advice(path)
    for _, name, network in all_networks():
        for partition in PARTITIONS:
            if (name, partition) not in done:
                began = time.monotonic()
                budget = LONG_BUDGET if network.agents > MANY_AGENTS else BUDGET
                advice = advise(network, poisoned_of(network), partition=partition, budget=budget)
                scenarios = len(advice.pilots.scenarios) if advice.pilots else 0
                row = [name, partition, str(advice.recommended), scenarios]
                write(path, ["network", "partition", "rule", "scenarios"], [row])
                tell(f"{name} {partition}: {advice.recommended}", began)


def tell(what: str, began: float) -> None:
    """Print what was done, and how long it took."""
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


def read_results(path: Path) -> list[Result]:
    """What every rule did in every case."""
    return [
        Result(Key(family, name, partition, attack, place, int(seed)), rule, float(accuracy))
        for family, name, partition, attack, place, seed, rule, accuracy in read(path)
    ]


def read_advice(path: Path) -> dict[tuple[str, str], str]:
    """The advised rule by network and partition."""
    return {(name, partition): rule for name, partition, rule, _ in read(path)}


def read(path: Path) -> list[list[str]]:
    """The rows of a file, without the first."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def write(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Add rows to a file; the first has the names of columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([names, *rows] if new else rows)


def summary(
    results: Iterable[Result], advice: Mapping[tuple[str, str], str]
) -> list[tuple[str, float, float, float]]:
    """For each way to choose: the share of good choices, the mean and the worst loss."""
    by_case: dict[Key, Accuracies] = {}
    for row in results:
        by_case.setdefault(row.key, {})[row.rule] = row.accuracy
    gaps = {name: _gap(network) for _, name, network in all_networks()}
    lost: dict[str, list[float]] = {}
    for key, found in by_case.items():
        others = {other: one for other, one in by_case.items() if other.family != key.family}
        alike = [one for other, one in others.items() if other.partition == key.partition]
        middle = float(np.median([gaps[other.network] for other in others] or [0.0]))
        side = [
            one
            for other, one in others.items()
            if (gaps[other.network] > middle) == (gaps[key.network] > middle)
        ]
        chosen = {
            "the advisor": advice[key.network, key.partition],
            "always the weighted mean": "weighted_mean",
            "always the mean": "mean",
            "no communication": "local",
            "the best rule of other families": _best_single(others.values(), found),
            "the best rule of other families, same partition": _best_single(alike, found),
            "a stump on δ_max − δ": _best_single(side, found),
            "the theory's bounds": _by_theory(gaps[key.network], found),
        }
        best = max(found.values())
        for way, rule in chosen.items():
            lost.setdefault(way, []).append(best - found[rule])
        average = float(np.mean(list(found.values())))
        lost.setdefault("a random rule", []).append(best - average)
    return [
        (way, float(np.mean(np.array(losses) <= GOOD)), float(np.mean(losses)), max(losses))
        for way, losses in lost.items()
    ]


def _best_single(others: Iterable[Accuracies], found: Accuracies) -> str:
    """The possible rule with the least mean loss in other cases."""
    losses: dict[str, list[float]] = {}
    for case in others:
        for rule, accuracy in case.items():
            losses.setdefault(rule, []).append(max(case.values()) - accuracy)
    means = {rule: float(np.mean(some)) for rule, some in losses.items() if rule in found}
    return min(means, key=lambda rule: means[rule], default="weighted_mean")


def _gap(network: Network) -> float:
    """δ_max − δ at the worst places."""
    many = poisoned_of(network)
    return theory.worst_contamination(network, many).value - many / network.agents


def _by_theory(gap: float, found: Accuracies) -> str:
    """The weighted mean, unless the worst places contaminate no agent more than the average."""
    robust = [rule for rule in found if rule.startswith("ios")]
    return robust[0] if gap <= 0 and robust else "weighted_mean"


def main() -> None:
    """Compute what is missing, and print the summary."""
    train(RESULTS)
    ask(ADVICE)
    results = read_results(RESULTS)
    cases = {row.key for row in results}
    print(f"{len(cases)} cases on {len({key.network for key in cases})} networks")
    print(f"{'way to choose':50} {'good':>6} {'lost':>6} {'at most':>8}")
    for way, good, mean, worst in summary(results, read_advice(ADVICE)):
        print(f"{way:50} {good:6.1%} {mean:6.3f} {worst:8.3f}")


if __name__ == "__main__":
    main()
