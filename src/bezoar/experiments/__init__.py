"""Experiments: specs of runs, running them, and the paper's own."""

from bezoar.experiments._paper import Cell, figure_1
from bezoar.experiments._running import network_of, partition_of, run, run_all
from bezoar.experiments._spec import Choice, RunSpec
from bezoar.experiments._topology import (
    LearningError,
    TopologyStudy,
    block_network,
    learning_errors,
    topology_study,
)
from bezoar.experiments._verification import Verdict, reduced_mnist, verify

__all__ = [
    "Cell",
    "Choice",
    "LearningError",
    "RunSpec",
    "TopologyStudy",
    "Verdict",
    "block_network",
    "figure_1",
    "learning_errors",
    "network_of",
    "partition_of",
    "reduced_mnist",
    "run",
    "run_all",
    "topology_study",
    "verify",
]
