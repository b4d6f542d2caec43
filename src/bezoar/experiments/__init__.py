"""Experiments: specs of runs, running them, and the paper's own."""

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
    figure_1,
    first_seeds,
)
from bezoar.experiments._paper_claims import CLAIMS
from bezoar.experiments._provenance import provenance
from bezoar.experiments._running import network_of, partition_of, run, run_all
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
    "figure_1",
    "first_seeds",
    "judge",
    "judge_all",
    "learning_errors",
    "network_of",
    "partition_of",
    "plan_sweep",
    "provenance",
    "read_sweep",
    "reduced_mnist",
    "run",
    "run_all",
    "run_key",
    "sweep",
    "theorem_networks",
    "theorem_study",
    "topology_study",
    "verdict",
    "verify",
]
