"""``bezoar plan``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bezoar.cli._options import Json, Workers


def plan(
    spec: Annotated[Path, typer.Argument(help="A TOML file with the fields of a run.")],
    machines: Annotated[int, typer.Option(min=1, help="How many, like this one.")] = 1,
    bandwidth: Annotated[
        float, typer.Option(help="Gbit/s that a machine sends and receives at the same time.")
    ] = 10.0,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Tell the memory, traffic and time of a run on several machines."""
    from bezoar._numbers import count
    from bezoar.cli._screen import busy, console, print_json, print_table
    from bezoar.experiments import plan_machines, read_spec
    from bezoar.report import Table

    wanted = read_spec(spec)
    with busy("Measuring this machine"):
        found = plan_machines(wanted, machines, bandwidth * 1e9, workers)
    if json:
        print_json({**asdict(found), "seconds": found.seconds})
        return
    rows = {
        "agents": f"{found.agents:,}",
        "agents on a machine": f"{found.members:,}",
        "neighbours elsewhere": f"{found.halo:,}",
        "a message": f"{found.message / 1e3:,.1f} KB",
        "memory of a machine": f"{found.memory / 1e9:,.2f} GB",
        "sent by a machine": f"{found.sent / 1e9:,.3f} GB an iteration",
        "local updates": f"{found.local:,.2f} s an iteration",
        "rule": f"{found.rule:,.2f} s an iteration",
        "messages": f"{found.moving:,.2f} s an iteration at {bandwidth:g} Gbit/s",
        "together": f"{found.seconds:,.2f} s an iteration, without measurements",
    }
    threads = count(found.workers, "thread")
    title = f"{spec.name} on {count(machines, 'machine')} with {threads} each"
    print_table(Table.of(title, ("what", "takes"), rows.items()))
    console.print(
        f"Times were measured here with {found.measured:,} agents. A network of {found.cut:,} "
        "agents was cut.",
        markup=False,
    )
