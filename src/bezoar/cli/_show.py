"""``bezoar show``."""

from pathlib import Path
from typing import Any

from bezoar import data
from bezoar.cli._options import check_picture, read_poisoned
from bezoar.cli._screen import console, print_json, print_table
from bezoar.experiments import RunSpec, network_of, partition_of

#: Rows of the table of who holds what.
ROWS = 60


def show(given: dict[str, Any], plot: Path | None, json: bool) -> None:
    """Show a network and a partition over its agents."""
    check_picture(plot)
    if "poisoned" in given:
        given = given | {"poisoned": read_poisoned(given["poisoned"])}
    spec = RunSpec.read(given)
    network = network_of(spec)
    dataset = data.load(spec.dataset)
    partition = partition_of(spec, network.agents)
    holdings = partition.holdings(dataset.train_labels, dataset.classes)
    pictures = []
    if plot:
        from bezoar.report import holdings_figure, network_figure

        beside = plot.with_stem(f"{plot.stem}-holdings")
        pictures = [
            network_figure(plot, network),
            holdings_figure(beside, holdings, network.poisoned),
        ]
    if json:
        print_json(
            {
                "network": network.name,
                "agents": network.agents,
                "edges": [list(edge) for edge in network.edges],
                "poisoned": list(network.poisoned),
                "regular_is_connected": network.regular_is_connected,
                "holdings": holdings.tolist(),
            }
        )
        return
    connected = "connected" if network.regular_is_connected else "not connected"
    console.print(
        f"[bold]{spec.network}[/]: {network.agents} agents, {network.adjacency.nnz // 2} edges, "
        f"poisoned {list(network.poisoned) or 'nobody'}; the regular agents are {connected} "
        "among themselves"
    )
    kinds = [str(kind) for kind in range(dataset.classes)]
    rows = [
        [
            f"{agent}*" if network.poisoned_mask[agent] else str(agent),
            str(network.degrees[agent]),
            str(network.poisoned_inputs[agent]),
            *(str(count) if count else "·" for count in holdings[agent]),
        ]
        for agent in range(min(network.agents, ROWS))
    ]
    print_table(
        f"{spec.partition} of {spec.dataset}: samples of each class",
        ["agent", "links", "P_w", *kinds],
        rows,
    )
    console.print("[dim]* poisoned; P_w: poisoned agents among the inputs, itself included[/]")
    if network.agents > ROWS:
        console.print(f"… and {network.agents - ROWS} more agents (--json has all)")
    for picture in pictures:
        console.print(f"Picture: {picture}")
