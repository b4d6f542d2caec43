"""The commands below ``bezoar agents``."""

from pathlib import Path
from typing import Annotated

import typer

from bezoar.cli._options import STORE, DataDir, Json, Keep, Workers

agents_app = typer.Typer(
    help="Train with a process for each agent, on one machine or several.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Spec = Annotated[Path, typer.Argument(help="A TOML file with the fields of a run.")]
Patience = Annotated[
    float,
    typer.Option(
        min=0.01,
        help="Seconds to wait for a neighbour in a round; more than the slowest takes for a round "
        "with measurements.",
    ),
]
Wait = Annotated[
    float, typer.Option(min=0.01, help="Seconds to wait for neighbours that have not begun yet.")
]
CheckpointSeconds = Annotated[
    float, typer.Option(min=0.0, help="Training that may be lost when a process dies, in seconds.")
]
OwnKey = Annotated[Path | None, typer.Option("--key", help="A key file.", show_default=False)]
Folders = Annotated[
    list[Path] | None,
    typer.Argument(help="Folders in which agents write, as of a local run.", show_default=False),
]
Peers = Annotated[
    Path | None,
    typer.Option(help="Ask the agents in this folder of peers over the network, with --key."),
]
At = Annotated[
    str | None, typer.Option(help="Ask the agent that --key belongs to, at this HOST:PORT.")
]


@agents_app.command()
def local(
    context: typer.Context,
    spec: Spec,
    folder: Annotated[Path, typer.Option(help="Where the agents write.")] = Path("results/agents"),
    store: Keep = None,
    patience: Patience = 300.0,
    wait: Wait = 300.0,
    checkpoint_seconds: CheckpointSeconds = 30.0,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Train all agents on this machine, each in a process of its own.

    They talk over the loopback interface, with throwaway keys. The same command goes on where it
    was stopped.
    """
    from bezoar.cli import _agents

    _agents.run_here(context.params)


@agents_app.command()
def key(
    name: Annotated[str, typer.Option(help="The agent's name in the network.")],
    address: Annotated[
        str, typer.Option(help="HOST:PORT where its neighbours will reach it.")
    ] = "",
    out: Annotated[Path, typer.Option(help="Where to.")] = Path(),
    days: Annotated[int, typer.Option(min=1, help="How long it is valid.")] = 365,
) -> None:
    """Make the key of an agent.

    NAME.key is for the agent alone, NAME.toml for its neighbours.
    """
    from bezoar.cli import _agents

    _agents.make_own_key(name, address, out, days)


@agents_app.command()
def start(
    context: typer.Context,
    spec: Spec,
    name: Annotated[str, typer.Option(help="The agent's name in the network.")],
    peers: Annotated[Path, typer.Option(help="The folder with a file for each neighbour.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen at.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Its own samples (.npz). Default: its part of the spec's dataset."),
    ] = None,
    own_key: OwnKey = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where it writes. Default: agents/NAME.")
    ] = None,
    observers: Annotated[
        Path | None,
        typer.Option(help="A folder like peers: who may ask for status and results, too."),
    ] = None,
    patience: Patience = 60.0,
    wait: Wait = 300.0,
    checkpoint_seconds: CheckpointSeconds = 30.0,
    prometheus: Annotated[
        str | None, typer.Option(help="Serve metrics for Prometheus at this HOST:PORT.")
    ] = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="After the last round, answer until stopped.")
    ] = False,
    workers: Workers = None,
    data_dir: DataDir = None,
) -> None:
    """Train one agent, with its neighbours on other machines.

    The same command goes on from its last checkpoint.
    """
    from bezoar.cli import _agents

    _agents.start_agent(context.params)


@agents_app.command()
def status(
    context: typer.Context,
    folders: Folders = None,
    own_key: OwnKey = None,
    peers: Peers = None,
    at: At = None,
    json: Json = False,
) -> None:
    """Show where agents stand: round, accuracy, missed messages.

    The accuracy is that on their own test data.
    """
    from bezoar.cli import _agents

    _agents.show_status(context.params)


@agents_app.command()
def collect(
    context: typer.Context,
    spec: Spec,
    folders: Folders = None,
    own_key: OwnKey = None,
    peers: Peers = None,
    at: At = None,
    store: Annotated[Path, typer.Option(help="Where finished runs are kept.")] = STORE,
    json: Json = False,
) -> None:
    """Put the results of agents into a store, as one run.

    'bezoar report' shows it.
    """
    from bezoar.cli import _agents

    _agents.collect_results(context.params)
