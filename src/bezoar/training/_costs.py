"""The agents' local costs: gradients of softmax regression for all runs in one pass.

The gradient of the mean cross-entropy over an agent's ``n`` samples is ``(1/n) (P − Y) X``, with
``P`` the predicted probabilities and ``Y`` the one-hot labels: two matrix products, with the
classes of all runs as rows, so that one pass over the samples serves every run.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from bezoar.attacks import DynamicLabelFlip
from bezoar.models import SoftmaxRegression
from bezoar.training._workers import Workers


class LocalCosts(ABC):
    """The local costs ``f̂_w`` of all agents in all runs, with full gradients.

    Models are ``[runs, agents, …]``; what follows is the costs' own affair.

    Attributes:
        runs: the number of runs.
        agents: the number of agents.
        dtype: of models and samples.
        device: where to compute.
    """

    runs: int
    agents: int
    dtype: torch.dtype
    device: torch.device

    @abstractmethod
    def start(self) -> Tensor:
        """``[runs, agents, …]`` the models everyone starts from."""

    def head(self, models: Tensor) -> Tensor | None:
        """``[runs, agents, classes, features]`` the output layers as a view, if there are any."""
        return None

    def vectors(self, models: Tensor) -> Tensor:
        """``[runs, agents, D]`` models as users get them."""
        return models.flatten(2)

    @abstractmethod
    def descend(self, models: Tensor, steps: Tensor, weight_decay: Tensor) -> None:
        """The local update of every agent, in place.

        Args:
            models: ``[runs, agents, …]``.
            steps: ``[runs]`` the step sizes.
            weight_decay: ``[runs]``.
        """

    @abstractmethod
    def gradients_at(self, common: Tensor, models: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients and costs of every agent at one model a run.

        Args:
            common: ``[runs, …]`` where to take them.
            models: ``[runs, agents, …]`` the agents' own models, by which dynamic
                attacks choose their labels.

        Returns:
            ``[runs, agents, …]`` gradients, and ``[runs, agents]`` costs, float64
            and correct wherever labels are not dynamic.
        """


class SoftmaxCosts(LocalCosts):
    """Local costs of softmax regression; models are ``[runs, agents, classes, width]``.

    Attributes:
        model: how a model lies in memory.
    """

    def __init__(
        self,
        model: SoftmaxRegression,
        runs: int,
        agents: int,
        dtype: torch.dtype,
        device: torch.device,
        workers: Workers,
    ) -> None:
        self.model = model
        self.runs = runs
        self.agents = agents
        self.dtype = dtype
        self.device = device
        self._workers = workers

    def start(self) -> Tensor:
        shape = (self.runs, self.agents, self.model.classes, self.model.width)
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def head(self, models: Tensor) -> Tensor:
        return self.model.head(models)

    def vectors(self, models: Tensor) -> Tensor:
        return self.model.flatten(models)


def least_likely(scores: Tensor) -> Tensor:
    """``[..., classes, n]`` scores as ``[..., 1, n]`` classes: what dynamic label flipping says."""
    low, high = scores.aminmax(dim=-2, keepdim=True)
    unlikely = scores <= low + DynamicLabelFlip.tie * (high - low)
    return unlikely.to(torch.uint8).argmax(-2, keepdim=True)
