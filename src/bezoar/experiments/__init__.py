"""Experiments: specs of runs, running them, keeping them, and the paper's own.

What trains is imported when it is first used: looking at finished runs needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bezoar.experiments._claims import Claim, Judged, judge, judge_all, verdict
    from bezoar.experiments._findings import Band, Findings, Measured, Seen
    from bezoar.experiments._grid import expand, read_sweep
    from bezoar.experiments._paper import (
        BASELINE,
        DRAWN,
        MNIST,
        NETWORKS,
        PARTITION_TITLES,
        SETTINGS,
        Cell,
        Place,
        Setting,
        distinct_specs,
        first_seeds,
    )
    from bezoar.experiments._paper_claims import CLAIMS
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
    from bezoar.experiments._theorem_study import (
        ITERATIONS,
        OBJECTIVES,
        THEOREM_RULES,
        Checked,
        consensus_exponents,
        theorem_networks,
        theorem_study,
    )
    from bezoar.experiments._topology import (
        LearningError,
        TopologyStudy,
        block_network,
        learning_errors,
        topology_study,
    )
    from bezoar.experiments._verification import ROUNDING, Verdict, reduced_mnist, verify

__all__ = [
    "BASELINE",
    "CLAIMS",
    "DRAWN",
    "ITERATIONS",
    "MNIST",
    "NETWORKS",
    "OBJECTIVES",
    "PARTITION_TITLES",
    "ROUNDING",
    "SETTINGS",
    "THEOREM_RULES",
    "Band",
    "BrokenRunError",
    "Cell",
    "Checked",
    "Choice",
    "Claim",
    "Failure",
    "Findings",
    "Judged",
    "LearningError",
    "Measured",
    "Place",
    "RunSpec",
    "Seen",
    "Setting",
    "Store",
    "StoreError",
    "StoredRun",
    "SweepPlan",
    "Swept",
    "TopologyStudy",
    "UnknownFormatError",
    "Verdict",
    "Watch",
    "block_network",
    "consensus_exponents",
    "distinct_specs",
    "expand",
    "first_seeds",
    "judge",
    "judge_all",
    "learning_errors",
    "network_of",
    "network_of_run",
    "partition_of",
    "plan_sweep",
    "provenance",
    "read_sweep",
    "reduced_mnist",
    "run",
    "run_all",
    "run_key",
    "spec_of",
    "sweep",
    "theorem_networks",
    "theorem_study",
    "topology_study",
    "verdict",
    "verify",
]

#: Which module has what.
_HOMES = {
    "_claims": ("Claim", "Judged", "judge", "judge_all", "verdict"),
    "_findings": ("Band", "Findings", "Measured", "Seen"),
    "_grid": ("expand", "read_sweep"),
    "_paper": (
        "BASELINE",
        "DRAWN",
        "MNIST",
        "NETWORKS",
        "PARTITION_TITLES",
        "SETTINGS",
        "Cell",
        "Place",
        "Setting",
        "distinct_specs",
        "first_seeds",
    ),
    "_paper_claims": ("CLAIMS",),
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
    "_theorem_study": (
        "ITERATIONS",
        "OBJECTIVES",
        "THEOREM_RULES",
        "Checked",
        "consensus_exponents",
        "theorem_networks",
        "theorem_study",
    ),
    "_topology": (
        "LearningError",
        "TopologyStudy",
        "block_network",
        "learning_errors",
        "topology_study",
    ),
    "_verification": ("ROUNDING", "Verdict", "reduced_mnist", "verify"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bezoar.experiments.{home}"), name)
    raise AttributeError(f"module 'bezoar.experiments' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
