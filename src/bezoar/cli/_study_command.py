"""The command ``bezoar study``. What takes long to import is imported when it is needed."""

from pathlib import Path
from typing import Annotated

import typer

from bezoar.cli._options import DataDir, Workers


def study(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(
            help="adaptive, worst_labels, over_time, placement, estimate, momentum, threat, or all."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/studies"),
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds. Default: 3.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Training images, drawn by the seed. Default: 1000.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="How long to train. Default: 300.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a page of all studies in that folder here.")
    ] = None,
    data_dir: DataDir = None,
    workers: Workers = None,
) -> None:
    """Answer a question about rules, attacks and networks by a small sweep on MNIST."""
    from bezoar.cli import _study

    _study.study(context.params)
