"""Who holds which classes in the runs of a report."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bezoar import data
from bezoar._errors import BezoarError
from bezoar.experiments import RunSpec, network_of, partition_of
from bezoar.networks import Network

#: Agents in a table at the most, and classes.
ROWS, CLASSES = 60, 30


@dataclass(frozen=True)
class Row:
    """What an agent holds.

    Attributes:
        agent: its number.
        total: how many samples.
        counts: how many of each class.
        poisoned: the networks in which it is poisoned, as in specs.
    """

    agent: int
    total: int
    counts: tuple[int, ...]
    poisoned: tuple[str, ...]


@dataclass(frozen=True)
class Holdings:
    """Who holds which classes.

    Attributes:
        title: the partition and the dataset, as in specs.
        seeds: the seeds of the runs; the table is about the first.
        agents, classes: how many there are; the table may have fewer.
        rows: the agents.
        largest: the largest number of samples that an agent has of a class.
    """

    title: str
    seeds: tuple[int, ...]
    agents: int
    classes: int
    rows: tuple[Row, ...]
    largest: int


def holdings(specs: Iterable[RunSpec]) -> list[Holdings]:
    """A table for every dataset, partition and number of agents of some runs."""
    alike: dict[Any, list[tuple[RunSpec, Network]]] = {}
    for spec in specs:
        try:
            network = network_of(spec)
        except BezoarError:
            continue  # which the network's own page says
        alike.setdefault((spec.dataset, spec.partition, network.agents), []).append((spec, network))
    tables = []
    for several in alike.values():
        try:
            tables.append(_table(several))
        except BezoarError:
            continue  # a dataset or partition that is not known here
    return tables


def _table(several: list[tuple[RunSpec, Network]]) -> Holdings:
    spec, network = min(several, key=lambda pair: pair[0].seed)
    dataset = data.load(spec.dataset)
    counts = partition_of(spec, network.agents).holdings(dataset.train_labels, dataset.classes)
    poisoned: dict[int, dict[str, None]] = {}
    for one, wired in several:
        for agent in wired.poisoned:
            poisoned.setdefault(agent, {})[str(one.network)] = None
    rows = [
        Row(
            agent,
            int(counts[agent].sum()),
            tuple(counts[agent, :CLASSES].tolist()),
            tuple(poisoned.get(agent, ())),
        )
        for agent in range(min(network.agents, ROWS))
    ]
    return Holdings(
        title=f"{spec.partition} of {spec.dataset}, {network.agents} agents",
        seeds=tuple(sorted({one.seed for one, _ in several})),
        agents=network.agents,
        classes=dataset.classes,
        rows=tuple(rows),
        largest=int(counts.max()),
    )
