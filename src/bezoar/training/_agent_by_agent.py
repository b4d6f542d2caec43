"""Gradients of agents with many samples each: matrix products agent by agent."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar._products import linear
from bezoar._workspace import workspace
from bezoar.attacks import Attack
from bezoar.models import SoftmaxRegression
from bezoar.training._agent_samples import poisoned_labels
from bezoar.training._judges import judges
from bezoar.training._task import DatasetTask
from bezoar.training._varying_features import VaryingFeatures

#: Samples multiplied at a time, so that scores and probabilities stay in the cache.
BLOCK = 1024


class DynamicLabels(NamedTuple):
    """An attack that chooses labels of an agent anew, in which runs and for which samples.

    Attributes:
        attack: the attack.
        runs: ``[r]`` the runs.
        chosen: ``[r, n]`` which samples of the agent it chooses labels for.
    """

    attack: Attack
    runs: Tensor
    chosen: Tensor


#: Dynamic labels, and the models ``[r, classes, width]`` whose scores decide about them in these
#: runs; ``None`` stands for the models at which gradients are taken.
Judged = tuple[DynamicLabels, Tensor | None]


class AgentByAgent:
    """Gradients of softmax regression computed agent by agent, in blocks of samples.

    The part ``Y X`` of a gradient does not change from step to step and is computed once.

    Attributes:
        held: the samples of each agent.
    """

    def __init__(self, task: DatasetTask, model: SoftmaxRegression) -> None:
        dataset, partition = task.dataset, task.partition
        self._model, self._agents = model, task.agents
        self._runs, self._members = task.runs, task.members
        self._dtype, self._device, self._workers = task.dtype, task.device, task.workers
        self._counts = partition.sizes.tolist()
        parts = (dataset.train[partition.samples(agent)] for agent in range(task.agents))
        self.held = [VaryingFeatures(model, part, task.dtype, task.device) for part in parts]
        self._biggest_first = np.argsort(-partition.sizes, kind="stable").tolist()
        self._dynamic: dict[int, list[DynamicLabels]] = {}
        # [agents, classes, width] the constant (1/n) Y X of every gradient with true labels, and
        # [runs, agents, classes, width] the same with the labels that agents attack with.
        self._true = self._true_part(task)
        self._targets = self._label_part(task)

    def gradients(self, models: Tensor, iteration: int, out: Tensor) -> Tensor:
        """``[runs, agents, classes, width]`` every agent's gradient at its own model."""
        deciding = judges(self._runs, self._members, models, self.clean_gradients, iteration)

        def evaluate(agent: int) -> None:
            dynamic = self._judged(agent, iteration, deciding)
            products, _ = self._pass(agent, models[:, agent], dynamic)
            self._gradient(agent, products, self._held(agent, iteration), out[:, agent])

        self._workers.map(evaluate, self._biggest_first)
        return out

    def gradients_at(self, common: Tensor, models: Tensor, iteration: int) -> tuple[Tensor, Tensor]:
        """See :meth:`bezoar.training.Task.gradients_at`."""
        gradients = torch.empty_like(models)
        costs = torch.empty(models.shape[:2], dtype=torch.float64, device=self._device)
        deciding = judges(self._runs, self._members, models, self.clean_gradients, iteration)

        def evaluate(agent: int) -> None:
            dynamic = self._judged(agent, iteration, deciding, models[:, agent])
            products, log_sums = self._pass(agent, common, dynamic, want_costs=True)
            held = self._held(agent, iteration)
            self._gradient(agent, products, held, gradients[:, agent])
            label_part = (common.double() * held.double()).sum((-1, -2))
            costs[:, agent] = log_sums - label_part

        self._workers.map(evaluate, self._biggest_first)
        return gradients, costs

    def clean_gradients(self, models: Tensor) -> Tensor:
        """Gradients with true labels at ``models [r, agents, classes, width]`` of some runs."""
        out = torch.empty_like(models, memory_format=torch.contiguous_format)

        def evaluate(agent: int) -> None:
            products, _ = self._pass(agent, models[:, agent])
            self._gradient(agent, products, self._true[agent], out[:, agent])

        self._workers.map(evaluate, self._biggest_first)
        return out

    def _judged(
        self,
        agent: int,
        iteration: int,
        deciding: Mapping[Attack, Tensor],
        own: Tensor | None = None,
    ) -> list[Judged]:
        """Which labels of an agent are chosen in an iteration, and by what.

        ``own [runs, classes, width]`` are its models, if gradients are taken at others.
        """
        found = []
        for dynamic in self._dynamic.get(agent, ()):
            attack, runs, _ = dynamic
            if attack.active(iteration):
                of_agent = deciding[attack][:, agent] if attack in deciding else own
                found.append((dynamic, None if of_agent is None else of_agent[runs]))
        return found

    def _held(self, agent: int, iteration: int) -> Tensor:
        """``[runs, classes, width]`` the labels' part of an agent's gradients in an iteration."""
        held = self._targets[:, agent]
        outside = [n for n, run in enumerate(self._runs) if not run.attack.active(iteration)]
        if outside:
            held = held.clone()
            held[outside] = self._true[agent]
        return held

    def _gradient(self, agent: int, products: Tensor, targets: Tensor, out: Tensor) -> None:
        """Write ``(1/n) (P X − Y X)`` for one agent in every run."""
        mean = self.held[agent].widen(products).div_(self._counts[agent])
        torch.sub(mean.view_as(out), targets, out=out)

    def _pass(
        self, agent: int, models: Tensor, dynamic: Iterable[Judged] = (), want_costs: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Go through an agent's samples once, for models ``[runs, classes, width]``.

        The products contain what ``dynamic`` labels add to the gradient.

        Returns:
            ``[runs·classes, narrow]`` the sum of probabilities times the samples that are held, in
            memory that is used again, and, if costs are wanted, ``[runs]`` the mean over the
            samples of the logarithm of the softmax denominator.
        """
        held = self.held[agent]
        rows = held.narrow(models.reshape(-1, self._model.width))
        height, width = rows.shape
        runs = len(models)
        products = workspace("products", (height, width), self._dtype, self._device)
        chances = workspace("chances", (height * BLOCK,), self._dtype, self._device)
        log_sums = torch.zeros(runs, dtype=torch.float64, device=self._device)
        products.zero_()
        deciding = [(labels, None if by is None else held.narrow(by)) for labels, by in dynamic]
        for first in range(0, len(held.samples), BLOCK):
            samples = held.samples[first : first + BLOCK]
            count = len(samples)
            by_class = linear(rows, samples).view(runs, -1, count)
            likely = chances[: height * count].view(runs, -1, count)
            torch.softmax(by_class, dim=1, out=likely)
            if want_costs:
                # The likeliest class tells: its chance is exp(score) over the denominator.
                log_sum = by_class.amax(1) - likely.amax(1).log_()
                log_sums += log_sum.sum(-1, dtype=torch.float64)
            for (attack, where, chosen), judge in deciding:
                # Subtract one at the class that the attack chooses for each dynamic label.
                judged = by_class[where] if judge is None else judge @ samples.T
                here = chosen[:, None, first : first + count].to(likely.dtype)
                likely[where] = likely[where].scatter_add_(1, attack.on_scores(judged), -here)
            products += linear(likely.view(height, count), samples.T)
        return products, log_sums / len(held.samples)

    def _true_part(self, task: DatasetTask) -> Tensor:
        """``[agents, classes, width]`` with the true labels."""
        shape = (self._agents, self._model.classes, self._model.width)
        targets = torch.zeros(shape, dtype=self._dtype, device=self._device)

        def true_labels(agent: int) -> None:
            labels = task.dataset.train_labels[task.partition.samples(agent)]
            targets[agent] = self._class_means(agent, labels, np.ones(len(labels)))

        self._workers.map(true_labels, range(self._agents))
        return targets

    def _label_part(self, task: DatasetTask) -> Tensor:
        """``[runs, agents, classes, width]`` with the labels of attacks that are not dynamic."""
        targets = self._true.expand(len(self._runs), -1, -1, -1).clone()
        dynamic: dict[tuple[int, Attack], list[tuple[int, NDArray[np.bool_]]]] = {}
        for run, agent, labels, where in poisoned_labels(task):
            targets[run, agent] = self._class_means(agent, labels, np.where(where, 0.0, 1.0))
            if where.any():
                dynamic.setdefault((agent, task.runs[run].attack), []).append((run, where))
        for (agent, attack), entries in dynamic.items():
            numbers, masks = zip(*entries, strict=True)
            runs = torch.tensor(numbers, device=self._device)
            chosen = torch.from_numpy(np.stack(masks)).to(self._device)
            self._dynamic.setdefault(agent, []).append(DynamicLabels(attack, runs, chosen))
        return targets

    def _class_means(
        self, agent: int, labels: NDArray[np.int64], counted: NDArray[np.float64]
    ) -> Tensor:
        """``[classes, width]`` the sum of each class's samples over the number of all samples."""
        held = self.held[agent]
        one_hot = np.zeros((self._model.classes, len(labels)))
        one_hot[labels, np.arange(len(labels))] = counted
        rows = torch.from_numpy(one_hot).to(self._device)
        shape = (self._model.classes, held.samples.shape[1])
        sums = torch.zeros(shape, dtype=torch.float64, device=self._device)
        for first in range(0, len(labels), BLOCK):
            part = held.samples[first : first + BLOCK].double()
            sums.addmm_(rows[:, first : first + BLOCK], part)
        return held.widen(sums) / len(labels)
