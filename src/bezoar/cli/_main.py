"""The commands. Whatever takes long to import is imported when a command needs it."""

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from bezoar.cli import _runs_commands
from bezoar.cli._options import Json, Poisoned

app = typer.Typer(
    name="bezoar",
    help="Train a model together with peers over a network when some peers' labels are poisoned.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(_runs_commands.app, name="runs")

Workers = Annotated[
    Optional[int],  # noqa: UP045 - typer reads this form
    typer.Option(min=1, help="Threads; results do not depend on it. Default: one a core."),
]
CHOICE = "Name or name:option=value,…; see 'bezoar list {}'."


def choice(kind: str) -> Any:
    """An option that takes a name, perhaps with options."""
    return typer.Option(help=CHOICE.format(kind), show_default=False)


@app.command()
def run(
    spec: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(help="A TOML file with the fields of a run; options replace its fields."),
    ] = None,
    network: Annotated[Optional[str], choice("networks")] = None,  # noqa: UP045
    poisoned: Poisoned = None,
    aggregator: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            help=CHOICE.format("aggregators") + " Give it several times to compare rules.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[Optional[str], choice("partitions")] = None,  # noqa: UP045
    attack: Annotated[Optional[str], choice("attacks")] = None,  # noqa: UP045
    optimizer: Annotated[Optional[str], choice("optimizers")] = None,  # noqa: UP045
    schedule: Annotated[Optional[str], choice("schedules")] = None,  # noqa: UP045
    dataset: Annotated[Optional[str], typer.Option(help="Default: mnist.")] = None,  # noqa: UP045
    iterations: Annotated[Optional[int], typer.Option(help="Default: 1000.")] = None,  # noqa: UP045
    every: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Iterations between measurements. Default: 10."),
    ] = None,
    weight_decay: Annotated[Optional[float], typer.Option(help="Default: 0.")] = None,  # noqa: UP045
    dtype: Annotated[Optional[str], typer.Option(help="float32 or float64.")] = None,  # noqa: UP045
    device: Annotated[Optional[str], typer.Option(help="A torch device.")] = None,  # noqa: UP045
    seed: Annotated[Optional[int], typer.Option(help="Default: 0.")] = None,  # noqa: UP045
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Add the weighted mean with nobody poisoned.")
    ] = False,
    workers: Workers = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Save a picture here (.png, .pdf, .svg)."),
    ] = None,
    json: Json = False,
) -> None:
    """Train, and show what became of it."""
    from bezoar.cli import _run

    fields = {
        "network": network,
        "poisoned": poisoned,
        "partition": partition,
        "attack": attack,
        "optimizer": optimizer,
        "schedule": schedule,
        "dataset": dataset,
        "iterations": iterations,
        "every": every,
        "weight_decay": weight_decay,
        "dtype": dtype,
        "device": device,
        "seed": seed,
    }
    given = {field: value for field, value in fields.items() if value is not None}
    _run.run(spec, given, aggregator or [], baseline, workers, plot, json)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A TOML file; any field given as a list is swept.")],
    store: Annotated[Path, typer.Option(help="Where finished runs are kept.")] = Path(
        "results/store"
    ),
    workers: Workers = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only tell what there is to do, and how long it takes."),
    ] = False,
    json: Json = False,
) -> None:
    """Have all runs of a document in a store; kill it at any time, and call it again."""
    from bezoar.cli import _sweep

    _sweep.run_sweep(spec, store, workers, dry_run, json)


@app.command()
def reproduce(
    figures: Annotated[
        list[str],
        typer.Argument(
            help="fig1, fig2, fig4, fig5, fig7, fig9, fig10, table1, table2; mnist for all of "
            "these; theorems, contamination."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results"),
    seeds: Annotated[
        int, typer.Option(min=1, help="How many seeds: curves are means, bands their range.")
    ] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="An impression in a minute or two: few iterations.")
    ] = False,
    iterations: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Fewer or more iterations than the figure has."),
    ] = None,
    workers: Workers = None,
) -> None:
    """Reproduce figures and tables of the paper, and judge its claims about them."""
    from bezoar.cli import _reproduce

    _reproduce.reproduce(figures, out, seeds, iterations, quick, workers)


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="A folder of results, or a store.")],
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to. Default: report.html in the folder."),
    ] = None,
) -> None:
    """Write everything in a folder of results as one HTML file that works offline."""
    from bezoar.cli import _report

    _report.report(results, out)


@app.command()
def show(
    network: Annotated[Optional[str], choice("networks")] = None,  # noqa: UP045
    poisoned: Poisoned = None,
    partition: Annotated[Optional[str], choice("partitions")] = None,  # noqa: UP045
    seed: Annotated[int, typer.Option(min=0)] = 0,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Save the drawing here; who holds what goes beside it."),
    ] = None,
    json: Json = False,
) -> None:
    """Show a network, who is poisoned, and who holds what."""
    from bezoar.cli import _show

    given = {"network": network, "poisoned": poisoned, "partition": partition, "seed": seed}
    _show.show({k: v for k, v in given.items() if v is not None}, plot, json)


@app.command()
def theory(
    network: Annotated[str, choice("networks")] = "two_castle",
    poisoned: Poisoned = None,
    aggregator: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            help=CHOICE.format("aggregators") + " Default: every rule of the paper.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Tell what the theory promises on a network, and where it would be worst."""
    from bezoar.cli import _theory

    _theory.show_theory(network, poisoned, aggregator or [], json)


@app.command(name="list")
def list_(
    kind: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="aggregators, networks, partitions, attacks, optimizers, schedules, datasets or "
            "metrics."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List what can be chosen, with options and their defaults."""
    from bezoar.cli import _list

    _list.list_(kind, json)


@app.command()
def schema() -> None:
    """Print the JSON schema of specs and sweeps, for editors that complete and check TOML."""
    from bezoar.cli import _schema

    _schema.schema()


@app.command()
def doctor(json: Json = False) -> None:
    """Tell about this machine and installation: versions, threads, speed, data."""
    from bezoar.cli import _doctor

    _doctor.doctor(json)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from bezoar import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; users' mistakes end in one line, not in a traceback."""
    from bezoar._errors import BezoarError

    try:
        app()
    except BezoarError as error:
        typer.echo(f"bezoar: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"bezoar: {error.filename or ''}: {error.strerror or error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("bezoar: interrupted", err=True)
        sys.exit(130)
