"""Softmax regression on samples that some runs change: those of agents with a backdoor."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bezoar._arrays import Ints
from bezoar._products import linear
from bezoar._workspace import workspace
from bezoar.attacks import Attack
from bezoar.models import SoftmaxRegression
from bezoar.training._agent_samples import poisoned_labels, stamped_samples
from bezoar.training._task import DatasetTask


class _Held(NamedTuple):
    """What a poisoned agent trains on: samples ``[n, width]`` and their labels ``[n]``."""

    attack: Attack
    samples: Tensor
    labels: Tensor


class StampedAgents:
    """The poisoned agents whose samples have a patch, run by run.

    All runs share passes over the samples as they are. What these agents add is computed apart,
    and takes the place of what the pass gave.
    """

    def __init__(self, task: DatasetTask, model: SoftmaxRegression) -> None:
        self._held: dict[tuple[int, int], _Held] = {}
        stamped = {(run, agent): which for run, agent, which in stamped_samples(task)}
        if not stamped:
            return
        for run, agent, labels, _ in poisoned_labels(task):
            if (run, agent) in stamped:
                attack, images = task.runs[run].attack, task.dataset.train
                images = images[task.partition.samples(agent)]
                which = stamped[run, agent].reshape(-1, *[1] * (images.ndim - 1))
                patch = attack.patch(images.shape[1:])
                samples = model.design(np.where(which & patch, np.uint8(255), images), task.dtype)
                held = torch.from_numpy(labels).to(task.device)
                self._held[run, agent] = _Held(attack, samples.to(task.device), held)

    def rewrite(
        self, models: Tensor, iteration: int, gradients: Tensor, costs: Tensor | None = None
    ) -> None:
        """Write the gradients, and costs if asked, of these agents in an iteration.

        Args:
            models: ``[runs, agents, classes, width]`` where gradients are taken.
            iteration: which iteration it is, counted from 1.
            gradients: ``[runs, agents, classes, width]``, changed in place.
            costs: ``[runs, agents]``, changed in place.
        """
        for (run, agent), (attack, samples, labels) in self._held.items():
            if attack.active(iteration):
                scores = scores_of(models[run, agent], samples)
                sums = gradient_sums(scores[None], labels[None], samples)
                gradients[run, agent] = sums[0] / len(samples)
                if costs is not None:
                    costs[run, agent] = cross_entropy(scores.T.double(), labels)

    def rewrite_batch(
        self,
        models: Tensor,
        runs: Sequence[int],
        agent: int,
        iteration: int,
        places: Ints,
        gradients: Tensor,
    ) -> None:
        """The same for one agent in some runs, over the samples of a batch at ``places``."""
        for run in runs:
            held = self._held.get((run, agent))
            if held is not None and held.attack.active(iteration):
                drawn = torch.from_numpy(places).to(held.samples.device)
                samples, labels = held.samples[drawn], held.labels[drawn]
                scores = scores_of(models[run, agent], samples)
                sums = gradient_sums(scores[None], labels[None], samples)
                gradients[run, agent] = sums[0] / len(samples)


def scores_of(models: Tensor, samples: Tensor) -> Tensor:
    """``[..., classes, n]`` the scores that models ``[..., classes, width]`` give to samples."""
    return linear(models.reshape(-1, models.shape[-1]), samples).view(*models.shape[:-1], -1)


def gradient_sums(scores: Tensor, labels: Tensor, samples: Tensor) -> Tensor:
    """``[runs, classes, width]`` sums over the samples of the gradients ``(P − Y) X``.

    They follow from scores ``[runs, classes, n]`` and labels ``[runs, n]``.
    """
    likely = workspace("chances", tuple(scores.shape), scores.dtype, scores.device)
    torch.softmax(scores, dim=1, out=likely)
    chosen = labels.unsqueeze(1)
    likely.scatter_add_(1, chosen, likely.new_full((), -1.0).expand(chosen.shape))
    return linear(likely.flatten(0, 1), samples.T).view(*scores.shape[:2], -1)
