"""What is trained: runs, and what runs that are trained together share."""

from dataclasses import dataclass, field

from bezoar.aggregators import Aggregator
from bezoar.attacks import Attack
from bezoar.data import Dataset, Partition
from bezoar.networks import Network
from bezoar.training._schedules import InverseSqrt, Schedule


@dataclass(frozen=True)
class Run:
    """One run of Algorithm 1.

    Attributes:
        network: who hears whom, and who is poisoned.
        aggregator: the rule of all agents.
        attack: what the poisoned agents do to their labels.
        schedule: the step sizes.
        weight_decay: added to the gradient, times the model.
        seed: where the attack's random choices grow from.
    """

    network: Network
    aggregator: Aggregator
    attack: Attack
    schedule: Schedule = field(default_factory=InverseSqrt)
    weight_decay: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Problem:
    """What runs that are stepped together share.

    Attributes:
        dataset: the samples; ``None`` where local costs are given otherwise.
        partition: who holds which; the same.
        iterations: the number of iterations, ``K``.
        every: metrics are taken at the start, after every so many iterations, and at the end.
        metrics: which metrics to take, of :data:`~bezoar.training.METRICS`.
        dtype: ``"float32"`` or ``"float64"``.
        device: a torch device.
    """

    dataset: Dataset | None
    partition: Partition | None
    iterations: int
    every: int
    metrics: tuple[str, ...]
    dtype: str = "float32"
    device: str = "cpu"
