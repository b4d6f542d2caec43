"""Gradients of softmax regression over batches."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from bezoar._arrays import Ints
from bezoar.attacks import Attack
from bezoar.training._agent_by_agent import BLOCK, AgentByAgent
from bezoar.training._agent_samples import AgentSamples
from bezoar.training._batches import Batches
from bezoar.training._judges import judges
from bezoar.training._run import State
from bezoar.training._stamped import StampedAgents, gradient_sums, scores_of
from bezoar.training._task import DatasetTask


class SoftmaxBatches:
    """Gradients of softmax regression over batches; runs with one seed share theirs.

    ``whole`` computes full gradients of the task and holds its samples; ``stamped`` has those with
    a patch.
    """

    def __init__(
        self, task: DatasetTask, whole: AgentByAgent, batches: Batches, stamped: StampedAgents
    ) -> None:
        self._whole, self._batches = whole, batches
        self._task, self._workers = task, task.workers
        self._labels, self._stamped = AgentSamples(task), stamped
        self._runs: dict[int, list[int]] = {}
        for number, run in enumerate(task.runs):
            self._runs.setdefault(run.seed, []).append(number)

    def gradients(self, state: State, update: int, out: Tensor) -> Tensor:
        """``[runs, agents, classes, width]`` every agent's gradient at its own model."""
        models, iteration, task = state.models, state.iteration + 1, self._task
        whole = self._whole.clean_gradients
        deciding = judges(task.runs, task.members, models, whole, iteration)

        def evaluate(agent: int) -> None:
            for seed, runs in self._runs.items():
                places = self._batches.places(seed, agent, update)
                out[runs, agent] = self._gradients(runs, agent, places, models, iteration, deciding)
                self._stamped.rewrite_batch(models, runs, agent, iteration, places, out)

        self._workers.map(evaluate, range(task.agents))
        return out

    def _gradients(
        self,
        runs: list[int],
        agent: int,
        places: Ints,
        models: Tensor,
        iteration: int,
        deciding: Mapping[Attack, Tensor],
    ) -> Tensor:
        """``[r, classes, width]`` one agent's gradients in some runs, over its samples at places.

        ``deciding`` has the models ``[runs, agents, classes, width]`` by which attacks decide about
        labels, where these are not the agents' own.
        """
        here = self._whole.held[agent]
        own = here.narrow(models[runs, agent])
        labels = [self._labels.labels(run, agent, places, iteration) for run in runs]
        held = torch.stack([each.held for each in labels])
        sums = torch.zeros_like(own)
        for first in range(0, len(places), BLOCK):
            part = slice(first, first + BLOCK)
            samples = _at(here.samples, places[part])
            scores, chosen = scores_of(own, samples), held[:, part]
            for row, (run, each) in enumerate(zip(runs, labels, strict=True)):
                if each.dynamic is not None:
                    decider = deciding.get(each.attack)
                    judged = scores[row]
                    if decider is not None:
                        judged = scores_of(here.narrow(decider[run, agent]), samples)
                    chosen[row] = each.some(part).by(judged.T)
            sums += gradient_sums(scores, chosen, samples)
        return here.widen(sums.div_(len(places)))


def _at(samples: Tensor, places: Ints) -> Tensor:
    """``[n, width]`` the samples at some places, without a copy if these follow each other."""
    first, count = int(places[0]), len(places)
    if np.array_equal(places, np.arange(first, first + count)):
        return samples[first : first + count]
    return samples.index_select(0, torch.from_numpy(places).to(samples.device))
