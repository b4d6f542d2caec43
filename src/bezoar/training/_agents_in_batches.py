"""Gradients of many agents with few samples each: batched matrix products over agents."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from bezoar._workspace import workspace
from bezoar.attacks import Attack
from bezoar.models import SoftmaxRegression
from bezoar.training._agent_samples import poisoned_labels
from bezoar.training._judges import judges
from bezoar.training._task import DatasetTask

#: Bytes of gathered samples held at a time by a worker.
BATCH_BYTES = 2 << 20


class AgentsInBatches:
    """Gradients of softmax regression computed for batches of agents at once.

    The samples stay where they are in the training set; a batch gathers those of its agents,
    padded to the largest number that any agent of the network holds, so that an agent is computed
    in the same way in any company.
    """

    def __init__(self, task: DatasetTask, model: SoftmaxRegression) -> None:
        dataset, partition, device = task.dataset, task.partition, task.device
        self._model, self._agents = model, task.agents
        self._runs, self._members = task.runs, task.members
        self._device, self._workers = device, task.workers
        place = np.arange(task.largest_part)
        held = place < partition.sizes[:, None]
        source = np.minimum(partition.offsets[:-1, None] + place, len(partition.order) - 1)
        index = partition.order[source]
        used, compact = np.unique(index, return_inverse=True)
        self._samples = model.design(dataset.train[used], task.dtype).to(device)
        self._index = torch.from_numpy(compact.reshape(index.shape)).to(device)
        share = np.where(held, 1.0 / partition.sizes[:, None], 0.0)
        self._share = torch.from_numpy(share).to(task.dtype).to(device)
        true = dataset.train_labels[index]
        self._true = torch.from_numpy(true).to(device)
        labels = np.tile(true, (len(task.runs), 1, 1))
        dynamic: dict[Attack, np.ndarray] = {}
        for run, agent, poisoned, chosen in poisoned_labels(task):
            labels[run, agent, : len(poisoned)] = poisoned
            if chosen.any():
                attack = task.runs[run].attack
                where = dynamic.setdefault(attack, np.zeros(labels.shape, dtype=np.bool_))
                where[run, agent, : len(chosen)] = chosen
        self._labels = torch.from_numpy(labels).to(device)
        self._dynamic = {
            attack: torch.from_numpy(where).to(device) for attack, where in dynamic.items()
        }
        # The same on the host: in which batches of agents there is anything to choose.
        self._chosen = {attack: np.any(where, axis=(0, 2)) for attack, where in dynamic.items()}

    def gradients(self, models: Tensor, iteration: int, out: Tensor) -> Tensor:
        """``[runs, agents, classes, width]`` every agent's gradient at its own model."""
        labels, deciding = self._held(iteration), self._deciding(models, iteration)
        self._passes(models, labels, deciding, out)
        return out

    def gradients_at(self, common: Tensor, models: Tensor, iteration: int) -> tuple[Tensor, Tensor]:
        """See :meth:`bezoar.training.Task.gradients_at`."""
        gradients = torch.empty_like(models)
        costs = torch.empty(models.shape[:2], dtype=torch.float64, device=self._device)
        labels, deciding = self._held(iteration), self._deciding(models, iteration)
        everywhere = common.unsqueeze(1).expand_as(models)
        self._passes(everywhere, labels, deciding, gradients, costs)
        return gradients, costs

    def clean_gradients(self, models: Tensor) -> Tensor:
        """Gradients with true labels at ``models [r, agents, classes, width]`` of some runs."""
        out = torch.empty_like(models, memory_format=torch.contiguous_format)
        self._passes(models, self._true.expand(len(models), -1, -1), {}, out)
        return out

    def _held(self, iteration: int) -> Tensor:
        """``[runs, agents, n]`` the labels that agents hold in an iteration."""
        active = [run.attack.active(iteration) for run in self._runs]
        if all(active):
            return self._labels
        attacks = torch.tensor(active, device=self._device)[:, None, None]
        return torch.where(attacks, self._labels, self._true)

    def _deciding(self, models: Tensor, iteration: int) -> dict[Attack, Tensor]:
        """``[runs, agents, classes, width]`` whose scores each dynamic attack goes by."""
        others = judges(self._runs, self._members, models, self.clean_gradients, iteration)
        active = (attack for attack in self._dynamic if attack.active(iteration))
        return {attack: others.get(attack, models) for attack in active}

    def _passes(
        self,
        rows: Tensor,
        labels: Tensor,
        deciding: Mapping[Attack, Tensor],
        out: Tensor,
        costs: Tensor | None = None,
    ) -> None:
        """Write the gradients and, if asked, the costs ``[runs, agents]`` of all agents.

        Gradients are taken at ``rows [runs, agents, classes, width]`` with the ``labels [runs,
        agents, n]``, but where attacks choose others: ``deciding`` has whose scores they go by.
        """
        per_agent = self._index.shape[1] * self._model.width * self._samples.element_size()
        some = max(1, BATCH_BYTES // per_agent)

        def evaluate(first: int) -> None:
            agents = slice(first, first + some)
            into = None if costs is None else costs[:, agents]
            self._pass(agents, rows[:, agents], labels[:, agents], deciding, out[:, agents], into)

        self._workers.map(evaluate, range(0, self._agents, some))

    def _pass(
        self,
        agents: slice,
        rows: Tensor,
        labels: Tensor,
        deciding: Mapping[Attack, Tensor],
        out: Tensor,
        costs: Tensor | None,
    ) -> None:
        """The same for some agents; ``deciding`` has all of them."""
        index, share = self._index[agents], self._share[agents]
        picked = labels.unsqueeze(-2)
        shape = (*index.shape, self._model.width)
        samples = workspace("samples", shape, self._samples.dtype, self._device)
        flat = samples.view(-1, self._model.width)
        torch.index_select(self._samples, 0, index.flatten(), out=flat)
        scores = self._scores(rows, samples)
        for attack, judge in deciding.items():
            if self._chosen[attack][agents].any():
                here = self._dynamic[attack][:, agents].unsqueeze(-2)
                chosen = attack.on_scores(self._scores(judge[:, agents], samples))
                picked = torch.where(here, chosen, picked)
        if costs is not None:
            apart = scores.logsumexp(-2) - scores.gather(-2, picked).squeeze(-2)
            costs.copy_((apart * share).sum(-1, dtype=torch.float64))
        likely = scores.softmax(-2)
        likely.scatter_add_(-2, picked, likely.new_full((), -1.0).expand(picked.shape))
        likely.mul_(share.unsqueeze(-2))
        by_agent = likely.transpose(0, 1).flatten(1, 2)
        if len(rows) == 1:
            torch.bmm(by_agent, samples, out=out[0])
            return
        gradients = by_agent @ samples
        out.copy_(gradients.view(len(gradients), len(rows), *out.shape[2:]).transpose(0, 1))

    def _scores(self, rows: Tensor, samples: Tensor) -> Tensor:
        """``[runs, agents, classes, n]`` from ``[runs, agents, classes, width]``."""
        by_agent = rows.transpose(0, 1).flatten(1, 2)
        scores = by_agent @ samples.mT
        return scores.view(len(scores), len(rows), -1, scores.shape[-1]).transpose(0, 1)
