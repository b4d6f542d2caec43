"""Partitions: who has which samples, as tables."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.experiments import RunSpec, StoredRun, dataset_of, network_of_run, partition_of, spec_of
from bezoar.networks import Network
from bezoar.report._page import Page, Table
from bezoar.report._theory import describe

#: Agents in a table at the most, and classes.
ROWS, CLASSES = 60, 30


def samples_of(spec: RunSpec, agents: int) -> NDArray[np.int64]:
    """``[agents, classes]`` how many training samples of each class every agent has."""
    dataset = dataset_of(spec)
    return partition_of(spec, agents).holdings(dataset.train_labels, dataset.classes)


def partition_table(
    title: str,
    counts: NDArray[np.int64],
    poisoned: Collection[int],
    columns: Mapping[str, Sequence[str]],
) -> Table:
    """Who has how many samples of each class.

    Args:
        title: a heading.
        counts: ``[agents, classes]``.
        poisoned: agents that are marked with a square.
        columns: further columns, with a text for each agent.
    """
    agents, classes = counts.shape
    if agents > ROWS or classes > CLASSES:
        title += f" (the first {min(agents, ROWS)} of {agents} agents"
        title += f" and {min(classes, CLASSES)} of {classes} classes)"
    rows = (
        (
            f"■ {agent}" if agent in poisoned else str(agent),
            *(str(count) if count else "·" for count in counts[agent, :CLASSES].tolist()),
            *(texts[agent] for texts in columns.values()),
        )
        for agent in range(min(agents, ROWS))
    )
    return Table(
        title=title,
        columns=("agent", *map(str, range(min(classes, CLASSES))), *columns),
        rows=tuple(rows),
        shaded=min(classes, CLASSES),
    )


def network_page(spec: RunSpec, network: Network) -> Page:
    """A network and the partition of the samples over its agents."""
    connected = "connected" if network.regular_is_connected else "not connected"
    columns = {
        "links": [str(degree) for degree in network.degrees],
        "P_w": [str(inputs) for inputs in network.poisoned_inputs],
    }
    title = f"Partition: {spec.partition} of {spec.dataset}, samples of each class"
    samples = samples_of(spec, network.agents)
    return Page(
        name="network",
        title=f"{spec.network}: {describe(network)}",
        caption=f"The regular agents are {connected} among themselves. ■ marks poisoned agents; "
        "P_w is the number of poisoned agents among an agent's inputs, itself included.",
        tables=(partition_table(title, samples, network.poisoned, columns),),
    )


def partition_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """A table for every dataset, partition and number of agents of some runs."""
    alike: dict[object, list[StoredRun]] = {}
    for run in runs:
        try:
            agents = network_of_run(run).agents
        except BezoarError:
            continue  # which the network's own page says
        spec = spec_of(run)
        alike.setdefault((spec.dataset, spec.partition, agents), []).append(run)
    tables = []
    for several in alike.values():
        try:
            tables.append(_table(several))
        except BezoarError:
            continue  # a dataset or partition that is not known here
    return tables


def _table(runs: Sequence[StoredRun]) -> Table:
    first = min(map(spec_of, runs), key=lambda spec: spec.seed)
    agents = network_of_run(runs[0]).agents
    poisoned: list[dict[str, None]] = [{} for _ in range(agents)]
    for run in runs:
        for agent in network_of_run(run).poisoned:
            poisoned[agent][str(spec_of(run).network)] = None
    title = f"{first.partition} of {first.dataset}, {agents} agents"
    if len({spec_of(run).seed for run in runs}) > 1:
        title += f", seed {first.seed}"
    counts = samples_of(first, agents)
    columns = {
        "all": [str(total) for total in counts.sum(axis=1)],
        "poisoned on": [", ".join(networks) for networks in poisoned],
    }
    marked = [agent for agent in range(agents) if poisoned[agent]]
    return partition_table(title, counts, marked, columns)
