"""The agents' local costs: gradients of softmax regression for all runs in one pass."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bezoar._seeds import Branch, generator
from bezoar.attacks import DynamicLabelFlip
from bezoar.data import Dataset, Partition
from bezoar.models import SoftmaxRegression
from bezoar.training._run import Run
from bezoar.training._workers import Workers

#: Samples multiplied at a time, so that logits and probabilities stay in the cache.
BLOCK = 1024


class LocalCosts:
    """The local costs ``f̂_w`` of all agents in all runs, with full gradients.

    The gradient of the mean cross-entropy over an agent's samples is ``(1/n) (P − Y) X``, with
    ``P`` the predicted probabilities and ``Y`` the one-hot labels. The part of the labels does
    not change from step to step and is computed once; what remains are two matrix products, with
    the classes of all runs as rows: one pass over the samples serves every run.

    Args:
        dataset: the samples.
        partition: who holds which.
        runs: what differs: who is poisoned, and how.
        dtype: of models and samples.
        device: where to compute.
        workers: who computes.
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
        self.model = SoftmaxRegression(dataset.classes, dataset.features)
        self.runs = len(runs)
        self.agents = partition.agents
        self.dtype = dtype
        self.device = device
        self._workers = workers
        self._offsets = partition.offsets
        self._samples = self.model.design(dataset.train[partition.order], dtype).to(device)
        self._biggest_first = np.argsort(-partition.sizes, kind="stable").tolist()
        # For each agent the runs in which its labels follow its model, and where they do.
        self._dynamic: dict[int, tuple[Tensor, Tensor]] = {}
        self._targets = self._label_part(dataset, partition, runs)

    def start(self) -> Tensor:
        """``[runs, agents, classes, width]`` the models everyone starts from: zero."""
        return torch.zeros(
            self.runs,
            self.agents,
            self.model.classes,
            self.model.width,
            dtype=self.dtype,
            device=self.device,
        )

    def descend(self, models: Tensor, steps: Tensor, weight_decay: Tensor) -> None:
        """The local update of every agent, in place.

        Args:
            models: ``[runs, agents, classes, width]``.
            steps: ``[runs]`` the step sizes.
            weight_decay: ``[runs]``.
        """
        steps = steps.view(-1, 1, 1)
        shrink = 1 - steps * weight_decay.view(-1, 1, 1)

        def update(agent: int) -> None:
            own = models[:, agent]
            products, _ = self._pass(agent, own.reshape(-1, self.model.width))
            change = self._gradient(agent, products)
            own.mul_(shrink).sub_(change.mul_(steps))

        self._workers.map(update, self._biggest_first)

    def gradients_at(self, common: Tensor, models: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients and costs of every agent at one model a run.

        Args:
            common: ``[runs, classes, width]`` where to take them.
            models: ``[runs, agents, classes, width]`` the agents' own models, by which dynamic
                attacks choose their labels.

        Returns:
            ``[runs, agents, classes, width]`` gradients, and ``[runs, agents]`` costs, float64
            and correct wherever labels are not dynamic.
        """
        gradients = torch.empty_like(models)
        costs = torch.empty(self.runs, self.agents, dtype=torch.float64, device=self.device)
        flat = common.reshape(-1, self.model.width)

        def evaluate(agent: int) -> None:
            products, log_sums = self._pass(agent, flat, judges=models[:, agent], want_costs=True)
            gradients[:, agent] = self._gradient(agent, products)
            label_part = (common.double() * self._targets[:, agent].double()).sum((-1, -2))
            costs[:, agent] = log_sums - label_part

        self._workers.map(evaluate, self._biggest_first)
        return gradients, costs

    def _gradient(self, agent: int, products: Tensor) -> Tensor:
        count = int(self._offsets[agent + 1] - self._offsets[agent])
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
        products = self._workers.buffer(
            "products", (height, width), self.dtype, self.device
        ).zero_()
        logits = self._workers.buffer("logits", (height * BLOCK,), self.dtype, self.device)
        chances = self._workers.buffer("chances", (height * BLOCK,), self.dtype, self.device)
        log_sums = torch.zeros(self.runs, dtype=torch.float64, device=self.device)
        start, stop = int(self._offsets[agent]), int(self._offsets[agent + 1])
        for first in range(start, stop, BLOCK):
            samples = self._samples[first : min(first + BLOCK, stop)]
            count = len(samples)
            scores = logits[: height * count].view(height, count)
            torch.mm(rows, samples.T, out=scores)
            by_class = scores.view(self.runs, -1, count)
            likely = chances[: height * count].view(self.runs, -1, count)
            torch.softmax(by_class, dim=1, out=likely)
            if want_costs:
                log_sums += by_class.logsumexp(1).sum(-1, dtype=torch.float64)
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
        """Subtract one at the least likely class of each touched sample."""
        runs, touched = self._dynamic[agent]
        judged = scores[runs] if judges is None else judges[runs] @ samples.T
        low, high = judged.aminmax(dim=1, keepdim=True)
        unlikely = judged <= low + DynamicLabelFlip.tie * (high - low)
        least = unlikely.to(torch.uint8).argmax(1, keepdim=True)
        here = touched[:, None, first : first + len(samples)].to(likely.dtype)
        likely[runs] = likely[runs].scatter_add_(1, least, -here)

    def _label_part(self, dataset: Dataset, partition: Partition, runs: Sequence[Run]) -> Tensor:
        """``[runs, agents, classes, width]`` the constant ``(1/n) Y X`` of every gradient."""
        targets = self.start()
        for agent in range(self.agents):
            samples = self._samples[self._offsets[agent] : self._offsets[agent + 1]]
            labels = dataset.train_labels[partition.samples(agent)]
            targets[:, agent] = self._class_means(samples, labels, np.ones(len(labels)))
            dynamic: list[tuple[int, np.ndarray]] = []
            for number, run in enumerate(runs):
                if not run.network.poisoned_mask[agent]:
                    continue
                rng = generator(run.seed, Branch.ATTACK, agent)
                touched = run.attack.touched(labels, rng)
                corrupted = run.attack.corrupt(labels, dataset.classes, rng)
                if run.attack.dynamic:
                    dynamic.append((number, touched))
                counted = np.where(touched & run.attack.dynamic, 0.0, 1.0)
                mixed = np.where(touched, corrupted, labels)
                targets[number, agent] = self._class_means(samples, mixed, counted)
            if dynamic:
                numbers, masks = zip(*dynamic, strict=True)
                self._dynamic[agent] = (
                    torch.tensor(numbers, device=self.device),
                    torch.from_numpy(np.stack(masks)).to(self.device),
                )
        return targets

    def _class_means(self, samples: Tensor, labels: np.ndarray, counted: np.ndarray) -> Tensor:
        """``[classes, width]`` the sum of each class's samples over the number of all samples."""
        kinds = torch.from_numpy(labels).to(self.device)
        one_hot = torch.zeros(len(labels), self.model.classes, dtype=torch.float64)
        one_hot = one_hot.to(self.device)
        one_hot[torch.arange(len(labels)), kinds] = torch.from_numpy(counted).to(self.device)
        sums = torch.zeros(
            self.model.classes, self.model.width, dtype=torch.float64, device=self.device
        )
        for block, part in zip(one_hot.split(BLOCK), samples.split(BLOCK), strict=True):
            sums.addmm_(block.T, part.double())
        return sums / len(labels)
