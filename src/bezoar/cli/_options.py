"""Options that several commands read; light, so that commands without training start fast."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bezoar._errors import BezoarError


def choice(kind: str, more: str = "", *flags: str) -> Any:
    """An option that takes a name, perhaps with options of its own; ``flags`` are its spellings."""
    text = f"Name or name:option=value,...; see 'bezoar list {kind}'. {more}"
    return typer.Option(*flags, help=text.strip(), show_default=False)


def _use_data_dir(folder: Path | None) -> Path | None:
    """Let datasets be looked for in a folder."""
    if folder is not None:
        if not folder.is_dir():
            raise BezoarError(f"data_dir: expected a folder, found {str(folder)!r}")
        from bezoar.data import DATA_VARIABLE

        os.environ[DATA_VARIABLE] = str(folder)
    return folder


#: Where finished runs are kept if nothing else is said.
STORE = Path("results/store")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Poisoned = Annotated[
    str | None,
    typer.Option(
        help="How many agents, or the names of those that are (3,5 or 3, or ward-7), or none.",
        show_default=False,
    ),
]
Placement = Annotated[
    str | None,
    typer.Option(
        help="Where a number of poisoned agents sit: last, random, degree, betweenness, worst or "
        "cut. Default: as the network says.",
        show_default=False,
    ),
]
Plot = Annotated[Path | None, typer.Option(help="Save a picture here (.png, .pdf, .svg).")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Threads; they do not change results. Default: all cores.")
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="The folder with dataset archives. Default: the variable BEZOAR_DATA.",
        callback=_use_data_dir,
    ),
]
Dataset = Annotated[
    str | None, choice("datasets", "Or an .npz file. Default: mnist.", "--dataset", "--data")
]
Samples = Annotated[
    int | None,
    typer.Option(min=1, help="Train on this many samples, drawn by the seed. Default: all."),
]
Attack = Annotated[str | None, choice("attacks")]
Model = Annotated[str | None, choice("models", "Default: softmax.")]
Schedule = Annotated[str | None, choice("schedules")]
Keep = Annotated[
    Path | None, typer.Option(help="Keep finished runs here, and take those that are there.")
]
FILES = "Or a file: GraphML, GEXF, GML, JSON, CSV or another list of links."
Network = Annotated[str | None, choice("networks", FILES)]
Partition = Annotated[str | None, choice("partitions")]
Rules = Annotated[list[str] | None, choice("aggregators", "May be given several times.")]


def spec_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that were given and have the name of a field of a spec."""
    from bezoar.experiments import RunSpec

    return {name: given[name] for name in RunSpec.model_fields if given.get(name) is not None}
