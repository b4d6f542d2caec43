"""Experiments: specs of runs, running them, and the paper's own."""

from bezoar.experiments._paper import Cell, figure_1
from bezoar.experiments._running import network_of, partition_of, run, run_all
from bezoar.experiments._spec import Choice, RunSpec
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
    "ITERATIONS",
    "OBJECTIVES",
    "ROUNDING",
    "THEOREM_RULES",
    "Cell",
    "Checked",
    "Choice",
    "LearningError",
    "RunSpec",
    "TopologyStudy",
    "Verdict",
    "block_network",
    "consensus_exponents",
    "figure_1",
    "learning_errors",
    "network_of",
    "partition_of",
    "reduced_mnist",
    "run",
    "run_all",
    "theorem_networks",
    "theorem_study",
    "topology_study",
    "verify",
]
