"""The commands. Whatever takes long to import is imported when a command needs it."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bezoar.cli._agents_app import agents_app
from bezoar.cli._options import (
    STORE,
    Attack,
    DataDir,
    Dataset,
    DryRun,
    Json,
    Keep,
    Model,
    Network,
    Partition,
    Placement,
    Plot,
    Poisoned,
    Rules,
    Samples,
    Schedule,
    Workers,
    choice,
)
from bezoar.cli._paper_commands import reproduce, theory
from bezoar.cli._plan import plan
from bezoar.cli._runs_app import runs_app
from bezoar.cli._study import study


class _Commands(TyperGroup):
    """The commands; whoever stops one is told that it has stopped."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("bezoar: interrupted", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="bezoar",
    cls=_Commands,
    help="Train a model together with peers over a network when some peers' labels are poisoned.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def run(
    context: typer.Context,
    spec: Annotated[
        Path | None,
        typer.Argument(help="A TOML file with the fields of a run; options replace its fields."),
    ] = None,
    network: Network = None,
    poisoned: Poisoned = None,
    placement: Placement = None,
    aggregator: Rules = None,
    partition: Partition = None,
    attack: Attack = None,
    dataset: Dataset = None,
    samples: Samples = None,
    data_dir: DataDir = None,
    model: Model = None,
    start: Annotated[str | None, choice("starts", "Or a .safetensors file.")] = None,
    algorithm: Annotated[str | None, choice("algorithms", "Default: adapt_then_combine.")] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Exchanges and aggregations an iteration. Default: 1.")
    ] = None,
    silent_links: Annotated[
        float | None, typer.Option(help="Probability that a link is silent. Default: 0.")
    ] = None,
    silent_agents: Annotated[
        float | None, typer.Option(help="Probability that an agent is silent. Default: 0.")
    ] = None,
    optimizer: Annotated[str | None, choice("optimizers")] = None,
    schedule: Schedule = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Samples in a batch. Default: all for softmax, 32 for networks."),
    ] = None,
    order: Annotated[str | None, typer.Option(help="Of batches: random or consecutive.")] = None,
    augment: Annotated[
        bool | None, typer.Option(help="Crop and mirror images at random.", show_default=False)
    ] = None,
    local_steps: Annotated[
        int | None, typer.Option(help="Local updates before an exchange. Default: 1.")
    ] = None,
    accumulate: Annotated[
        int | None, typer.Option(help="Parts a batch is computed in, to save memory. Default: 1.")
    ] = None,
    autocast: Annotated[
        str | None, typer.Option(help="Compute products in bfloat16 or float16.")
    ] = None,
    gradient_samples: Annotated[
        int | None,
        typer.Option(help="Samples of an agent on which gradients are measured. Default: 256."),
    ] = None,
    iterations: Annotated[int | None, typer.Option(help="Default: 1000.")] = None,
    every: Annotated[
        int | None, typer.Option(help="Iterations between measurements. Default: 10.")
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Default: 0.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64.")] = None,
    device: Annotated[str | None, typer.Option(help="A torch device.")] = None,
    seed: Annotated[int | None, typer.Option(help="Default: 0.")] = None,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Add the weighted mean with nobody poisoned.")
    ] = False,
    store: Keep = None,
    workers: Workers = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Train a run, or one for each aggregator, and show the results."""
    from bezoar.cli import _run

    _run.run(context.params)


@app.command()
def compare(
    context: typer.Context,
    network: Network = None,
    poisoned: Poisoned = None,
    placement: Placement = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            help="all (default), paper, or rules such as ios,faba; one with options alone. May be "
            "given several times.",
            show_default=False,
        ),
    ] = None,
    estimate: Annotated[
        str | None,
        typer.Option(
            help="How many of its inputs an agent takes for poisoned: a number (default: that of "
            "poisoned agents), or exact, which no real agent knows.",
            show_default=False,
        ),
    ] = None,
    partition: Partition = None,
    attack: Attack = None,
    dataset: Dataset = None,
    samples: Samples = None,
    data_dir: DataDir = None,
    model: Model = None,
    schedule: Schedule = None,
    iterations: Annotated[int | None, typer.Option(help="Default: 300.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    metric: Annotated[
        str | None,
        typer.Option(help="What to rank by; see 'bezoar list metrics'. Default: accuracy_mean."),
    ] = None,
    store: Keep = None,
    workers: Workers = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Train every rule that is possible on a network, and rank them."""
    from bezoar.cli import _compare

    _compare.compare_rules(context.params)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A TOML file; any field given as a list is swept.")],
    store: Annotated[Path, typer.Option(help="Where finished runs are kept.")] = STORE,
    data_dir: DataDir = None,
    workers: Workers = None,
    on: Annotated[
        str | None,
        typer.Option(
            help="Who trains: local:4 for processes, dask:tls://HOST:8786 for a Dask cluster. "
            "Default: this process.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Train the runs of a sweep that are not in the store yet.

    It may be stopped at any time. The same command goes on where it was.
    """
    from bezoar.cli import _sweep

    _sweep.run_sweep(spec, store, workers, on, dry_run, json)


app.command()(reproduce)


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="A folder of results, or a store.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to. Default: report.html in the folder.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Write a folder of results as one HTML file that works offline.

    If runs are missing or damaged, the report and the exit code say so.
    """
    from bezoar.cli._screen import busy, console, print_problem
    from bezoar.report import write_report

    problems: list[str] = []
    with busy("Writing the report"):
        path = write_report(results, out, problems.append)
    size = path.stat().st_size / 1e6
    console.print(f"Report: {path} ({size:.1f} MB)", markup=False, soft_wrap=True)
    for problem in problems:
        print_problem(problem)
    if problems:
        raise typer.Exit(1)


@app.command()
def show(
    context: typer.Context,
    network: Network = None,
    poisoned: Poisoned = None,
    placement: Placement = None,
    partition: Partition = None,
    dataset: Dataset = None,
    samples: Samples = None,
    data_dir: DataDir = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Show a network, who is poisoned, and who has which samples."""
    from bezoar.cli import _show

    _show.show(context.params)


@app.command()
def advise(
    context: typer.Context,
    network: Annotated[str, choice("networks", "Or a file.")],
    poisoned: Annotated[
        str, typer.Option(help="How many agents: 2, 1-4 or unknown.", show_default=False)
    ] = "unknown",
    partition: Partition = None,
    dataset: Dataset = None,
    data_dir: DataDir = None,
    threat: Annotated[str, typer.Option(help="What is poisoned: labels or messages.")] = "labels",
    aggregator: Rules = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Try the rules on this network for so long, such as 90s, 5m or 1h; 0 asks the "
            "theory alone. Default: what the study of other networks says, at once; where it says "
            "nothing (messages, other data), 5m."
        ),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(help="In place of a budget: scenarios and their iterations, such as 24x200."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Every random choice follows from it.")] = 0,
    workers: Workers = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Recommend a rule for a network.

    The answer comes from a study of other networks, or from short trainings on this one.
    """
    from bezoar.cli import _advise

    _advise.show_advice(context.params)


app.command()(theory)


@app.command(name="list")
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="aggregators, before (what can be done before one, as in nnm+krum), networks, "
            "datasets, partitions, models, starts, attacks, algorithms, optimizers, schedules or "
            "metrics."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="One of them, to be told all about it.")
    ] = None,
    threats: Annotated[
        bool, typer.Option("--threats", help="Which aggregator withstands which threat.")
    ] = False,
    json: Json = False,
) -> None:
    """List what can be chosen, or tell all about one choice."""
    from bezoar.cli import _list

    if threats:
        _list.list_threats(kind, name, json)
    else:
        _list.list_(kind, name, json)


@app.command()
def schema() -> None:
    """Print the JSON schema of specs and sweeps.

    With it, editors complete and check TOML.
    """
    from bezoar.cli._screen import print_json
    from bezoar.experiments import sweep_schema

    print_json(sweep_schema())


@app.command()
def doctor(json: Json = False) -> None:
    """Show versions, threads, speed and data of this installation."""
    from bezoar.cli import _doctor

    _doctor.doctor(json)


app.command()(study)
app.command()(plan)
app.add_typer(runs_app, name="runs")
app.add_typer(agents_app, name="agents")


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
    from bezoar.cli._streams import accept_every_character, mistakes_in_one_line

    accept_every_character()
    with mistakes_in_one_line():
        app()
