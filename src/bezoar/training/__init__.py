"""Algorithm 1: local updates, exchange, aggregation, for many runs at once."""

from typing import Any

from bezoar import _registry
from bezoar.training._checkpoint import Checkpoint, CheckpointError
from bezoar.training._costs import LocalCosts
from bezoar.training._engine import DTYPES, Engine, History, State, check_runs
from bezoar.training._metrics import METRICS
from bezoar.training._quadratic import QuadraticCosts, lower_bound_costs, random_quadratics
from bezoar.training._run import Problem, Run
from bezoar.training._schedules import SCHEDULES, Constant, Horizon, InverseSqrt, Schedule
from bezoar.training._speed import operations, product_speed
from bezoar.training._workers import Workers, available_cores

__all__ = [
    "DTYPES",
    "METRICS",
    "SCHEDULES",
    "Checkpoint",
    "CheckpointError",
    "Constant",
    "Engine",
    "History",
    "Horizon",
    "InverseSqrt",
    "LocalCosts",
    "Problem",
    "QuadraticCosts",
    "Run",
    "Schedule",
    "State",
    "Workers",
    "available_cores",
    "check_runs",
    "lower_bound_costs",
    "operations",
    "product_speed",
    "random_quadratics",
    "schedule",
]


def schedule(name: str, **options: Any) -> Schedule:
    """The schedule called ``name``, made with the given options."""
    return _registry.create("schedule", name, SCHEDULES, options)
