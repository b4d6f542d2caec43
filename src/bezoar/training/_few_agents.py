"""Local costs of agents with many samples each: matrix products agent by agent."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar._scratch import scratch
from bezoar.data import Dataset, Partition
from bezoar.models import SoftmaxRegression
from bezoar.training._costs import SoftmaxCosts, least_likely
from bezoar.training._labels import poisoned_beliefs
from bezoar.training._run import Run
from bezoar.training._workers import Workers

#: Samples multiplied at a time, so that logits and probabilities stay in the cache.
BLOCK = 512


class FewAgents(SoftmaxCosts):
    """Local costs computed agent by agent, in blocks of samples.

    The part ``Y X`` of a gradient does not change from step to step and is computed once.
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
        self._offsets = partition.offsets.tolist()
        self._samples = model.design(dataset.train[partition.order], dtype).to(device)
        self._biggest_first = np.argsort(-partition.sizes, kind="stable").tolist()
        # For an agent the runs in which its labels follow its model, and where they do.
        self._dynamic: dict[int, tuple[Tensor, Tensor]] = {}
        self._targets = self._label_part(dataset, partition, runs)

    def descend(self, models: Tensor, steps: Tensor, weight_decay: Tensor) -> None:
        steps = steps.view(-1, 1, 1)
        shrink = 1 - steps * weight_decay.view(-1, 1, 1)
        decays = bool((weight_decay > 0).any())

        def update(agent: int) -> None:
            own = models[:, agent]
            products, _ = self._pass(agent, own.reshape(-1, self.model.width))
            if decays:
                own.mul_(shrink)
            count = self._offsets[agent + 1] - self._offsets[agent]
            own.addcmul_(products.view_as(own), steps / count, value=-1)
            own.addcmul_(self._targets[:, agent], steps)

        self._workers.map(update, self._biggest_first)

    def gradients_at(self, common: Tensor, models: Tensor) -> tuple[Tensor, Tensor]:
        gradients = torch.empty_like(models)
        costs = torch.empty(self.runs, self.agents, dtype=torch.float64, device=self.device)
        rows = common.reshape(-1, self.model.width)

        def evaluate(agent: int) -> None:
            products, log_sums = self._pass(agent, rows, judges=models[:, agent], want_costs=True)
            gradients[:, agent] = self._gradient(agent, products)
            label_part = (common.double() * self._targets[:, agent].double()).sum((-1, -2))
            costs[:, agent] = log_sums - label_part

        self._workers.map(evaluate, self._biggest_first)
        return gradients, costs

    def _gradient(self, agent: int, products: Tensor) -> Tensor:
        count = self._offsets[agent + 1] - self._offsets[agent]
        gradient = products.view(self.runs, self.model.classes, -1)
        return gradient.div_(count).sub_(self._targets[:, agent])

    def _pass(
        self,
        agent: int,
        rows: Tensor,
        judges: Tensor | None = None,
        want_costs: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Go through an agent's samples once.

        Args:
            agent: whose samples.
            rows: ``[runs·classes, width]`` the models to evaluate.
            judges: ``[runs, classes, width]`` the models by which dynamic labels are chosen, if
                they are not the same.
            want_costs: whether the second result is needed.

        Returns:
            ``[runs·classes, width]`` the sum of probabilities times samples, in scratch memory,
            and ``[runs]`` the mean over the samples of the logarithm of the softmax denominator.
        """
        height, width = rows.shape
        products = scratch("products", (height, width), self.dtype, self.device)
        logits = scratch("logits", (height * BLOCK,), self.dtype, self.device)
        chances = scratch("chances", (height * BLOCK,), self.dtype, self.device)
        log_sums = torch.zeros(self.runs, dtype=torch.float64, device=self.device)
        products.zero_()
        start, stop = self._offsets[agent], self._offsets[agent + 1]
        for first in range(start, stop, BLOCK):
            samples = self._samples[first : min(first + BLOCK, stop)]
            count = len(samples)
            scores = logits[: height * count].view(height, count)
            torch.mm(rows, samples.T, out=scores)
            by_class = scores.view(self.runs, -1, count)
            likely = chances[: height * count].view(self.runs, -1, count)
            torch.softmax(by_class, dim=1, out=likely)
            if want_costs:
                # The likeliest class tells: its chance is exp(score) over the denominator.
                log_sum = by_class.amax(1) - likely.amax(1).log_()
                log_sums += log_sum.sum(-1, dtype=torch.float64)
            if agent in self._dynamic:
                self._subtract_dynamic(agent, first - start, samples, by_class, likely, judges)
            products.addmm_(likely.view(height, count), samples)
        return products, log_sums / (stop - start)

    def _subtract_dynamic(
        self,
        agent: int,
        first: int,
        samples: Tensor,
        scores: Tensor,
        likely: Tensor,
        judges: Tensor | None,
    ) -> None:
        """Subtract one at the least likely class of each sample whose label is dynamic."""
        runs, dynamic = self._dynamic[agent]
        judged = scores[runs] if judges is None else judges[runs] @ samples.T
        here = dynamic[:, None, first : first + len(samples)].to(likely.dtype)
        likely[runs] = likely[runs].scatter_add_(1, least_likely(judged), -here)

    def _label_part(self, dataset: Dataset, partition: Partition, runs: Sequence[Run]) -> Tensor:
        """``[runs, agents, classes, width]`` the constant ``(1/n) Y X`` of every gradient."""
        targets = self.start()

        def true_labels(agent: int) -> None:
            labels = dataset.train_labels[partition.samples(agent)]
            targets[:, agent] = self._class_means(agent, labels, np.ones(len(labels)))

        self._workers.map(true_labels, range(self.agents))
        dynamic: dict[int, list[tuple[int, NDArray[np.bool_]]]] = {}
        for held in poisoned_beliefs(dataset, partition, runs):
            targets[held.run, held.agent] = self._class_means(
                held.agent, held.labels, np.where(held.dynamic, 0.0, 1.0)
            )
            if held.dynamic.any():
                dynamic.setdefault(held.agent, []).append((held.run, held.dynamic))
        for agent, entries in dynamic.items():
            numbers, masks = zip(*entries, strict=True)
            self._dynamic[agent] = (
                torch.tensor(numbers, device=self.device),
                torch.from_numpy(np.stack(masks)).to(self.device),
            )
        return targets

    def _class_means(
        self, agent: int, labels: NDArray[np.int64], counted: NDArray[np.float64]
    ) -> Tensor:
        """``[classes, width]`` the sum of each class's samples over the number of all samples."""
        samples = self._samples[self._offsets[agent] : self._offsets[agent + 1]]
        one_hot = np.zeros((self.model.classes, len(labels)))
        one_hot[labels, np.arange(len(labels))] = counted
        rows = torch.from_numpy(one_hot).to(self.device)
        sums = torch.zeros(
            self.model.classes, self.model.width, dtype=torch.float64, device=self.device
        )
        for first in range(0, len(labels), BLOCK):
            part = samples[first : first + BLOCK].double()
            sums.addmm_(rows[:, first : first + BLOCK], part)
        return sums / len(labels)
