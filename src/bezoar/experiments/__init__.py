"""Experiments: specs of runs, running them, and the paper's own."""

from bezoar.experiments._paper import Cell, figure_1
from bezoar.experiments._running import network_of, partition_of, run, run_all
from bezoar.experiments._spec import Choice, RunSpec

__all__ = [
    "Cell",
    "Choice",
    "RunSpec",
    "figure_1",
    "network_of",
    "partition_of",
    "run",
    "run_all",
]
