"""Experiments: what a run is, and how many of them are planned and computed.

Here belong specs (typed documents, however they are spelled, with one name each), grids of them,
planning which are trained together, sweeps into a store, and who executes them. What trains is
imported when it is first needed: looking at finished runs takes no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bezoar.experiments._choice import Choice, option_text, read_choice
from bezoar.experiments._elsewhere import ExecutorError
from bezoar.experiments._executors import THREADS, Processes, executor_on
from bezoar.experiments._grid import expand, read_sweep
from bezoar.experiments._identity import agreement, versions
from bezoar.experiments._plan import Failure, Plan, make_plan
from bezoar.experiments._provenance import machine, provenance
from bezoar.experiments._ranks import follow, is_follower, launched, leading
from bezoar.experiments._running import Progress, first_accuracies, part_of, run, run_all, train_all
from bezoar.experiments._schema import sweep_schema
from bezoar.experiments._select import (
    check_export,
    export_runs,
    field_text,
    long_table,
    matches,
    read_conditions,
)
from bezoar.experiments._spec import (
    CHOICES,
    FORMAL,
    LISTS,
    RunSpec,
    read_poisoned,
    read_spec,
    read_toml,
    spec_of,
)
from bezoar.experiments._sweep import Swept, sweep
from bezoar.experiments._watch import Trainer, Watch
from bezoar.store import Store, StoredRun, StoreError

if TYPE_CHECKING:
    from bezoar.experiments._advance import advance
    from bezoar.experiments._machines import MachinePlan, plan_machines
    from bezoar.experiments._made import (
        dataset_of,
        network_of,
        network_of_run,
        partition_of,
        poisoned_network,
        run_key,
    )
    from bezoar.experiments._prepare import (
        Prepared,
        Report,
        one_agent,
        prepare,
        train,
    )

__all__ = [
    "CHOICES",
    "FORMAL",
    "LISTS",
    "THREADS",
    "Choice",
    "ExecutorError",
    "Failure",
    "MachinePlan",
    "Plan",
    "Prepared",
    "Processes",
    "Progress",
    "Report",
    "RunSpec",
    "Store",
    "StoreError",
    "StoredRun",
    "Swept",
    "Trainer",
    "Watch",
    "advance",
    "agreement",
    "check_export",
    "dataset_of",
    "executor_on",
    "expand",
    "export_runs",
    "field_text",
    "first_accuracies",
    "follow",
    "is_follower",
    "launched",
    "leading",
    "long_table",
    "machine",
    "make_plan",
    "matches",
    "network_of",
    "network_of_run",
    "one_agent",
    "option_text",
    "part_of",
    "partition_of",
    "plan_machines",
    "poisoned_network",
    "prepare",
    "provenance",
    "read_choice",
    "read_conditions",
    "read_poisoned",
    "read_spec",
    "read_sweep",
    "read_toml",
    "run",
    "run_all",
    "run_key",
    "spec_of",
    "sweep",
    "sweep_schema",
    "train",
    "train_all",
    "versions",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        # These need networkx and torch.
        for module in ("_made", "_prepare", "_advance", "_machines"):
            found = import_module(f"bezoar.experiments.{module}")
            if hasattr(found, name):
                return getattr(found, name)
    raise AttributeError(f"module 'bezoar.experiments' has no attribute {name!r}")
