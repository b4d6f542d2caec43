"""The commands below ``bezoar runs``."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bezoar.cli._options import STORE, DryRun, Json


class _ListByDefault(TyperGroup):
    """``bezoar runs …`` is ``bezoar runs list …`` unless another command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


runs_app = typer.Typer(
    cls=_ListByDefault,
    help="List, show, export and clear up finished runs.\n\nWithout a command, list them.",
    rich_markup_mode=None,
)
StorePath = Annotated[
    Path, typer.Argument(help="The store, or the folder of results that holds it.")
]


@runs_app.command(name="list")
def list_runs(
    store: StorePath = STORE,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Only runs with this value of a field of their spec; several values of one field "
            "are alternatives.",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write every measurement of these runs to a .csv or .parquet file."),
    ] = None,
    json: Json = False,
) -> None:
    """List finished runs."""
    from bezoar.cli import _runs

    _runs.list_runs(store, where or [], export, json)


@runs_app.command(name="show")
def show_run(
    key: Annotated[str, typer.Argument(help="The run's key, or the beginning of it.")],
    store: StorePath = STORE,
    json: Json = False,
) -> None:
    """Show one run: spec, last measurements, when and where it ran."""
    from bezoar.cli import _runs

    _runs.show_run(store, key, json)


@runs_app.command(name="gc")
def remove_garbage(
    store: StorePath = STORE,
    outdated: Annotated[
        bool,
        typer.Option(
            "--outdated", help="Also runs of other versions of bezoar, numpy or torch than these."
        ),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Remove broken runs and the leftovers of killed sweeps."""
    from bezoar.cli import _runs

    _runs.remove_garbage(store, outdated, dry_run, json)
