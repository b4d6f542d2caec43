"""Experiments: specs of runs, running them, and keeping them.

What trains is imported when it is first used: looking at finished runs needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bezoar.experiments._grid import expand, read_sweep
    from bezoar.experiments._provenance import provenance
    from bezoar.experiments._running import (
        network_of,
        network_of_run,
        partition_of,
        run,
        run_all,
        spec_of,
    )
    from bezoar.experiments._spec import Choice, RunSpec
    from bezoar.experiments._store import (
        BrokenRunError,
        Store,
        StoredRun,
        StoreError,
        UnknownFormatError,
        run_key,
    )
    from bezoar.experiments._sweep import Swept, Watch, sweep
    from bezoar.experiments._sweep_plan import Failure, SweepPlan, plan_sweep

__all__ = [
    "BrokenRunError",
    "Choice",
    "Failure",
    "RunSpec",
    "Store",
    "StoreError",
    "StoredRun",
    "SweepPlan",
    "Swept",
    "UnknownFormatError",
    "Watch",
    "expand",
    "network_of",
    "network_of_run",
    "partition_of",
    "plan_sweep",
    "provenance",
    "read_sweep",
    "run",
    "run_all",
    "run_key",
    "spec_of",
    "sweep",
]

#: Which module has what.
_HOMES = {
    "_grid": ("expand", "read_sweep"),
    "_provenance": ("provenance",),
    "_running": ("network_of", "network_of_run", "partition_of", "run", "run_all", "spec_of"),
    "_spec": ("Choice", "RunSpec"),
    "_store": (
        "BrokenRunError",
        "Store",
        "StoredRun",
        "StoreError",
        "UnknownFormatError",
        "run_key",
    ),
    "_sweep": ("Swept", "Watch", "sweep"),
    "_sweep_plan": ("Failure", "SweepPlan", "plan_sweep"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bezoar.experiments.{home}"), name)
    raise AttributeError(f"module 'bezoar.experiments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
