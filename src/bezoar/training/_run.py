"""One run of Algorithm 1, and where its training stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from bezoar._checks import instance, whole
from bezoar.aggregators import Aggregator
from bezoar.attacks import Attack
from bezoar.networks import Network, NetworkOverTime, as_network
from bezoar.training._optimizers import Optimizer, PlainStep
from bezoar.training._schedules import InverseSqrt, Schedule


@dataclass(frozen=True)
class Run:
    """One run of Algorithm 1.

    Attributes:
        network: who hears whom, and who is poisoned. A sequence of networks is used in turn; a
            function gives the network of each iteration, counted from 1.
        aggregator: the rule of all agents.
        attack: what the poisoned agents do to their labels or messages.
        schedule: the step sizes.
        weight_decay: added to the gradient, times the model.
        seed: every random choice of the run follows from it.
        optimizer: what the local update makes of gradients.
    """

    network: Network
    aggregator: Aggregator
    attack: Attack
    schedule: Schedule = field(default_factory=InverseSqrt)
    weight_decay: float = 0.0
    seed: int = 0
    optimizer: Optimizer = field(default_factory=PlainStep)

    def __post_init__(self) -> None:
        kinds = {
            "aggregator": Aggregator,
            "attack": Attack,
            "schedule": Schedule,
            "optimizer": Optimizer,
        }
        for name, kind in kinds.items():
            instance(name, getattr(self, name), kind, f"an instance of {kind.__name__}")
        whole("seed", self.seed, 0)
        found: Any = as_network(self.network)
        if not isinstance(found, Network):
            found = NetworkOverTime(found)
        object.__setattr__(self, "network", found)


@dataclass(frozen=True)
class State:
    """Where the training of some runs stands: everything that the rest of it depends on.

    Attributes:
        iteration: how many iterations are done.
        tensors: named tensors whose first dimension is the runs: the ``"models"``
            ``[runs, agents, …]``, and what tasks and optimisers keep beside them. What few rules
            keep is that of their runs alone.
    """

    iteration: int
    tensors: Mapping[str, Tensor]

    @property
    def models(self) -> Tensor:
        """``[runs, agents, …]`` every agent's model."""
        return self.tensors["models"]
