"""``bezoar show``."""

from pathlib import Path
from typing import Any

from bezoar.cli._options import check_picture, read_poisoned
from bezoar.cli._screen import print_json, print_page, print_path
from bezoar.experiments import RunSpec, network_of
from bezoar.report import Page, describe, partition_table, samples_of


def show(given: dict[str, Any], plot: Path | None, json: bool) -> None:
    """Show a network and a partition over its agents."""
    check_picture(plot)
    if "poisoned" in given:
        given = given | {"poisoned": read_poisoned(given["poisoned"])}
    spec = RunSpec.read(given)
    network = network_of(spec)
    samples = samples_of(spec, network.agents)
    pictures = []
    if plot:
        from bezoar.report import network_figure, partition_figure

        beside = plot.with_stem(f"{plot.stem}-partition")
        pictures = [
            network_figure(plot, network),
            partition_figure(beside, samples, network.poisoned),
        ]
    if json:
        print_json(
            {
                "network": network.name,
                "agents": network.agents,
                "edges": [list(edge) for edge in network.edges],
                "poisoned": list(network.poisoned),
                "regular_is_connected": network.regular_is_connected,
                "samples": samples.tolist(),
            }
        )
        return
    connected = "connected" if network.regular_is_connected else "not connected"
    columns = {
        "links": [str(degree) for degree in network.degrees],
        "P_w": [str(inputs) for inputs in network.poisoned_inputs],
    }
    title = f"Partition {spec.partition} of {spec.dataset}: samples of each class"
    page = Page(
        name="network",
        title=f"{spec.network}: {describe(network)}",
        caption=f"The regular agents are {connected} among themselves. ■ marks poisoned agents; "
        "P_w is the number of poisoned agents among an agent's inputs, itself included.",
        tables=(partition_table(title, samples, network.poisoned, columns),),
    )
    print_page(page)
    for picture in pictures:
        print_path("Picture", picture)
