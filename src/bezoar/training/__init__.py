"""Training: Algorithm 1, for many runs at once.

Here belong the engine, the tasks (what agents learn), optimisers and step sizes, metrics,
checkpoints, and the threads that share the work. How messages become models is the affair of
:mod:`bezoar.exchange`.
"""

from typing import Any

from bezoar import _options
from bezoar.training._algorithms import (
    AdaptThenCombine,
    Algorithm,
    CombineThenAdapt,
    GradientTracking,
)
from bezoar.training._batches import check_batches
from bezoar.training._checkpoint import Checkpoint, CheckpointError
from bezoar.training._engine import Engine, History, check_listening
from bezoar.training._exchanges import Exchanges, OneExchange
from bezoar.training._flat_model import average_model
from bezoar.training._gossip import Gossip
from bezoar.training._judges import check_model_judges
from bezoar.training._machine_speed import operations, product_speed
from bezoar.training._metrics import METRICS, OF_AGENTS, Metric
from bezoar.training._network_task import NetworkTask
from bezoar.training._optimizers import (
    OPTIMIZERS,
    HeavyBall,
    Momentum,
    Nesterov,
    Optimizer,
    PlainStep,
)
from bezoar.training._quadratic import QuadraticTask, random_quadratics
from bezoar.training._ranks import AllRanks, Everyone, Ranks
from bezoar.training._run import Run, State
from bezoar.training._schedules import (
    SCHEDULES,
    Constant,
    Horizon,
    Inverse,
    InverseSqrt,
    Milestones,
    OneCycle,
    Schedule,
)
from bezoar.training._sharded import Sharded, check_sharded
from bezoar.training._softmax import SoftmaxTask
from bezoar.training._task import DTYPES, Cost, DatasetTask, Task, check_device, check_runs
from bezoar.training._workers import Workers, available_cores

#: Every algorithm by its name.
ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.name: kind for kind in (AdaptThenCombine, CombineThenAdapt, GradientTracking, Gossip)
}

__all__ = [
    "ALGORITHMS",
    "DTYPES",
    "METRICS",
    "OF_AGENTS",
    "OPTIMIZERS",
    "SCHEDULES",
    "AdaptThenCombine",
    "Algorithm",
    "AllRanks",
    "Checkpoint",
    "CheckpointError",
    "CombineThenAdapt",
    "Constant",
    "Cost",
    "DatasetTask",
    "Engine",
    "Everyone",
    "Exchanges",
    "Gossip",
    "GradientTracking",
    "HeavyBall",
    "History",
    "Horizon",
    "Inverse",
    "InverseSqrt",
    "Metric",
    "Milestones",
    "Momentum",
    "Nesterov",
    "NetworkTask",
    "OneCycle",
    "OneExchange",
    "Optimizer",
    "PlainStep",
    "QuadraticTask",
    "Ranks",
    "Run",
    "Schedule",
    "Sharded",
    "SoftmaxTask",
    "State",
    "Task",
    "Workers",
    "available_cores",
    "average_model",
    "check_batches",
    "check_device",
    "check_listening",
    "check_model_judges",
    "check_runs",
    "check_sharded",
    "operations",
    "product_speed",
    "random_quadratics",
    "schedule",
]


def schedule(name: str, **options: Any) -> Schedule:
    """The schedule called ``name``, made with the given options."""
    return _options.create("schedule", name, SCHEDULES, options)
