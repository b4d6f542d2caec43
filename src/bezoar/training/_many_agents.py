"""Local costs of many agents with few samples each: batched matrix products over agents."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bezoar.data import Dataset, Partition
from bezoar.models import SoftmaxRegression
from bezoar.training._costs import SoftmaxCosts, least_likely
from bezoar.training._labels import poisoned_beliefs
from bezoar.training._run import Run
from bezoar.training._workers import Workers

#: Bytes of gathered samples held at a time by a worker.
CHUNK_BYTES = 4 << 20


class ManyAgents(SoftmaxCosts):
    """Local costs computed for chunks of agents at once.

    The samples stay where they are in the training set; a chunk gathers those of its agents,
    padded to the largest number any agent holds.
    """

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        runs: Sequence[Run],
        dtype: torch.dtype,
        device: torch.device,
        workers: Workers,
    ) -> None:
        model = SoftmaxRegression(dataset.classes, dataset.features)
        super().__init__(model, len(runs), partition.agents, dtype, device, workers)
        most = int(partition.sizes.max())
        place = np.arange(most)
        held = place < partition.sizes[:, None]
        source = np.minimum(partition.offsets[:-1, None] + place, len(partition.order) - 1)
        index = partition.order[source]
        used, compact = np.unique(index, return_inverse=True)
        self._samples = model.design(dataset.train[used], dtype).to(device)
        self._index = torch.from_numpy(compact.reshape(index.shape)).to(device)
        share = np.where(held, 1.0 / partition.sizes[:, None], 0.0)
        self._share = torch.from_numpy(share).to(dtype).to(device)
        labels = np.broadcast_to(dataset.train_labels[index], (len(runs), *index.shape)).copy()
        dynamic = np.zeros(labels.shape, dtype=np.bool_)
        for beliefs in poisoned_beliefs(dataset, partition, runs):
            count = len(beliefs.labels)
            labels[beliefs.run, beliefs.agent, :count] = beliefs.labels
            dynamic[beliefs.run, beliefs.agent, :count] = beliefs.dynamic
        self._labels = torch.from_numpy(labels).to(device)
        self._dynamic = torch.from_numpy(dynamic).to(device) if dynamic.any() else None

    def descend(self, models: Tensor, steps: Tensor, weight_decay: Tensor) -> None:
        steps = steps.view(-1, 1, 1, 1)
        shrink = 1 - steps * weight_decay.view(-1, 1, 1, 1)

        def update(agents: slice) -> None:
            own = models[:, agents]
            gradient, _ = self._pass(agents, own, own)
            own.mul_(shrink).sub_(gradient.mul_(steps))

        self._workers.map(update, self._chunks())

    def gradients_at(self, common: Tensor, models: Tensor) -> tuple[Tensor, Tensor]:
        gradients = torch.empty_like(models)
        costs = torch.empty(self.runs, self.agents, dtype=torch.float64, device=self.device)

        def evaluate(agents: slice) -> None:
            own = models[:, agents]
            gradients[:, agents], costs[:, agents] = self._pass(
                agents, common.unsqueeze(1).expand_as(own), own
            )

        self._workers.map(evaluate, self._chunks())
        return gradients, costs

    def _chunks(self) -> Iterator[slice]:
        per_agent = self._index.shape[1] * self.model.width * self._samples.element_size()
        some = max(1, CHUNK_BYTES // per_agent)
        for first in range(0, self.agents, some):
            yield slice(first, first + some)

    def _pass(self, agents: slice, rows: Tensor, judges: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients ``[runs, agents, classes, width]`` and costs ``[runs, agents]`` at ``rows``."""
        index, share, labels = self._index[agents], self._share[agents], self._labels[:, agents]
        samples = self._samples[index]
        scores = self._scores(rows, samples)
        likely = scores.softmax(-2)
        picked = labels.unsqueeze(-2)
        if self._dynamic is not None:
            dynamic = self._dynamic[:, agents].unsqueeze(-2)
            if bool(dynamic.any()):
                chosen = least_likely(self._scores(judges, samples))
                picked = torch.where(dynamic, chosen, picked)
        costs = scores.logsumexp(-2) - scores.gather(-2, picked).squeeze(-2)
        likely.scatter_add_(-2, picked, likely.new_full((), -1.0).expand(picked.shape))
        likely.mul_(share.unsqueeze(-2))
        by_agent = likely.transpose(0, 1).flatten(1, 2)
        gradients = by_agent @ samples
        gradients = gradients.view(len(gradients), self.runs, -1, self.model.width).transpose(0, 1)
        return gradients, (costs * share).sum(-1, dtype=torch.float64)

    def _scores(self, rows: Tensor, samples: Tensor) -> Tensor:
        """``[runs, agents, classes, n]`` from ``[runs, agents, classes, width]``."""
        by_agent = rows.transpose(0, 1).flatten(1, 2)
        scores = by_agent @ samples.mT
        return scores.view(len(scores), self.runs, -1, scores.shape[-1]).transpose(0, 1)
