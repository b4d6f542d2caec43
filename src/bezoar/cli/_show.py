"""``bezoar show``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezoar.cli._options import spec_fields
from bezoar.cli._screen import print_json, print_page, print_path
from bezoar.experiments import RunSpec, dataset_of, network_of
from bezoar.report import check_picture, network_page, samples_of


def show(given: Mapping[str, Any]) -> None:
    """Show a network and a partition over its agents; ``given`` is what was typed."""
    plot: Path | None = given["plot"]
    check_picture(plot)
    spec = RunSpec.read(spec_fields(given))
    network = network_of(spec)
    samples = samples_of(spec, network.agents)
    pictures = []
    if plot:
        from bezoar.report import network_figure, partition_figure

        beside = plot.with_stem(f"{plot.stem}-partition")
        pictures = [
            network_figure(plot, network),
            partition_figure(beside, samples, network.poisoned, network.names),
        ]
    if given["json"]:
        print_json(
            {
                "network": network.name,
                "agents": network.agents,
                "names": list(network.names),
                "edges": [list(edge) for edge in network.edges],
                "poisoned": list(network.poisoned),
                "regular_is_connected": network.regular_is_connected,
                "samples": samples.tolist(),
                "data_note": dataset_of(spec).note,
                "network_note": network.note,
            }
        )
        return
    print_page(network_page(spec, network))
    for picture in pictures:
        print_path("Picture", picture)
