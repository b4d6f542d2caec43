"""Stochastic gradients of softmax regression: a batch of every agent's samples."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bezoar.training._agent_by_agent import AgentByAgent
from bezoar.training._agent_samples import AgentSamples
from bezoar.training._batches import Batches
from bezoar.training._task import DatasetTask


class SoftmaxBatches:
    """Gradients of softmax regression over batches; runs with one seed share theirs.

    ``whole`` computes full gradients of the task and holds its samples.
    """

    def __init__(self, task: DatasetTask, whole: AgentByAgent, batches: Batches) -> None:
        self._whole, self._batches = whole, batches
        self._agents, self._workers = task.agents, task.workers
        self._labels = AgentSamples(task)
        self._runs: dict[int, list[int]] = {}
        for number, run in enumerate(task.runs):
            self._runs.setdefault(run.seed, []).append(number)

    def gradients(self, models: Tensor, update: int, out: Tensor) -> Tensor:
        """``[runs, agents, classes, width]`` every agent's gradient at its own model."""

        def evaluate(agent: int) -> None:
            for seed, runs in self._runs.items():
                out[runs, agent] = self._gradient(models[runs, agent], seed, agent, update, runs)

        self._workers.map(evaluate, range(self._agents))
        return out

    def _gradient(
        self, models: Tensor, seed: int, agent: int, update: int, runs: Sequence[int]
    ) -> Tensor:
        """``[runs, classes, width]`` one agent's gradient in the runs with one seed."""
        places = self._batches.places(seed, agent, update)
        held = self._whole.samples(agent)
        samples = held.index_select(0, torch.from_numpy(places).to(held.device))
        scores = (models.flatten(0, 1) @ samples.T).view(*models.shape[:2], -1)
        labels = [
            self._labels.labels(run, agent, places).by(own.T)
            for run, own in zip(runs, scores, strict=True)
        ]
        likely = scores.softmax(1)
        chosen = torch.stack(labels).unsqueeze(1)
        likely.scatter_add_(1, chosen, likely.new_full((), -1.0).expand(chosen.shape))
        return (likely.flatten(0, 1) @ samples).div_(len(places)).view_as(models)
