"""``bezoar reproduce`` and ``bezoar theory``."""

from pathlib import Path
from typing import Annotated

import typer

from bezoar.cli._options import FILES, DataDir, Json, Placement, Poisoned, Rules, Workers, choice


def reproduce(
    context: typer.Context,
    figures: Annotated[
        list[str],
        typer.Argument(
            help="fig1 to fig13, table1, table2; all for these; mnist for those that need no "
            "other data; threshold, theorems, contamination."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results"),
    seeds: Annotated[
        int, typer.Option(min=1, help="How many seeds: curves are means, bands their range.")
    ] = 1,
    scale: Annotated[
        str | None,
        typer.Option(
            help="paper (default; networks need a GPU), small (half an hour a figure on two "
            "cores) or quick (a minute).",
            show_default=False,
        ),
    ] = None,
    setting: Annotated[
        str, typer.Option(help="Settings of the paper, or of its authors' public code: authors.")
    ] = "paper",
    quick: Annotated[
        bool, typer.Option("--quick", help="The same as --scale quick: an impression.")
    ] = False,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Fewer or more iterations than the figure has.")
    ] = None,
    device: Annotated[str, typer.Option(help="A torch device, such as cuda.")] = "cpu",
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write a page of these results, and of other variants of them, here."),
    ] = None,
    data_dir: DataDir = None,
    workers: Workers = None,
) -> None:
    """Reproduce figures and tables of the paper; judge its claims."""
    from bezoar.cli import _reproduce

    _reproduce.reproduce(context.params)


def theory(
    context: typer.Context,
    network: Annotated[str, choice("networks", FILES)] = "two_castle",
    poisoned: Poisoned = None,
    placement: Placement = None,
    seed: Annotated[int, typer.Option(min=0, help="Of random placements.")] = 0,
    aggregator: Rules = None,
    json: Json = False,
) -> None:
    """Show what the theory promises on a network.

    That includes the worst places for so many poisoned agents.
    """
    from bezoar.cli import _theory

    _theory.show_theory(context.params)
