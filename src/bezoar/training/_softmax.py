"""Softmax regression: full gradients for all runs in one pass over the data, or batches."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from bezoar._errors import BezoarError
from bezoar._products import linear
from bezoar.aggregators import OutputLayer
from bezoar.attacks import LabelAttack
from bezoar.data import Dataset, Partition
from bezoar.models import SoftmaxRegression
from bezoar.training._agent_by_agent import BLOCK, AgentByAgent
from bezoar.training._agent_samples import AgentSamples
from bezoar.training._agents_in_batches import AgentsInBatches
from bezoar.training._batches import Batches, Order
from bezoar.training._run import Run, State
from bezoar.training._softmax_batches import SoftmaxBatches
from bezoar.training._stamped import StampedAgents
from bezoar.training._task import DTYPES, Cost, DatasetTask, Tensors, start_of
from bezoar.training._workers import Workers

#: Models tested at a time.
TESTED = 32

#: Agents who hold fewer samples than this are trained in batches of agents.
FEW_SAMPLES = 200


class SoftmaxTask(DatasetTask):
    """Softmax regression on a dataset that is divided among the agents.

    The gradient of the mean cross-entropy over an agent's ``n`` samples is ``(1/n) (P − Y) X``,
    with ``P`` the predicted probabilities and ``Y`` the one-hot labels: two matrix products, with
    the classes of all runs as rows, so that one pass over the samples serves every run. Models
    are ``[runs, agents, classes, width]``, see :class:`~bezoar.models.SoftmaxRegression`.

    Args:
        dataset, partition, runs, workers, dtype, device, members: as for :class:`DatasetTask`.
        batches: whether to take agents in batches, which is faster where they hold few samples;
            by default where they do.
        batch: how many of its samples an agent takes for a gradient; by default all.
        order: how agents go through their samples in batches: ``"random"``, or ``"consecutive"``
            as the code of the paper's authors does with batches of 5000.
        start: ``[D]`` for each run's seed where everyone starts, see
            :meth:`~bezoar.models.SoftmaxRegression.flatten`; by default at zero.
    """

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        runs: Sequence[Run],
        workers: Workers,
        dtype: str = "float32",
        device: str = "cpu",
        batches: bool | None = None,
        *,
        batch: int | None = None,
        order: Order = "random",
        start: Mapping[int, Tensor] | None = None,
        members: Sequence[int] | None = None,
    ) -> None:
        super().__init__(dataset, partition, runs, workers, dtype, device, members)
        self.model = SoftmaxRegression(dataset.classes, dataset.features)
        features, width = dataset.features, self.model.width
        self.output_layer = OutputLayer(dataset.classes, features, width, 0, features, width)
        if batches is None:
            batches = batch is None and self.largest_part < FEW_SAMPLES
        if batches and batch is not None:
            raise BezoarError(
                f"batches: gradients over a batch of {batch} samples are computed agent by agent, "
                "found True; allowed: False"
            )
        self._way = (AgentsInBatches if batches else AgentByAgent)(self, self.model)
        self._stamped = StampedAgents(self, self.model)
        self._sampled: SoftmaxBatches | None = None
        self._told = ""
        if batch is not None:
            assert isinstance(self._way, AgentByAgent)
            drawn = Batches(self.partition.sizes, batch, order, self.members)
            self._sampled = SoftmaxBatches(self, self._way, drawn, self._stamped)
            self._told = f"batches of {batch} in {order} order, "
        self._starts = {
            seed: self._vector(start, seed) for seed in dict.fromkeys(r.seed for r in self.runs)
        }
        if start is not None:
            digest = hashlib.sha256(torch.stack(list(self._starts.values())).numpy().tobytes())
            self._told = f"from {digest.hexdigest()}, {self._told}"
        self._tests: dict[LabelAttack | None, _TestSet] = {}
        self._lowest: dict[tuple[int, ...], float] = {}

    def _vector(self, start: Mapping[int, Tensor] | None, seed: int) -> Tensor:
        """``[D]`` where runs of one seed start, float64."""
        if start is None:
            return torch.zeros(self.model.parameters, dtype=torch.float64)
        vector = start_of(start, seed).detach().cpu().double()
        if vector.shape != (self.model.parameters,) or not bool(vector.isfinite().all()):
            raise BezoarError(
                f"start: expected {self.model.parameters} finite numbers for seed {seed}, found "
                f"{int(vector.isfinite().sum())} finite ones of the shape {list(vector.shape)}"
            )
        return vector

    @staticmethod
    def cost(
        dataset: Dataset, agents: int, dtype: str, remembered: int = 0, batch: int | None = None
    ) -> Cost:
        """What a run takes: models, gradients, and the labels' part of gradients.

        ``remembered`` is how many tensors like the models its optimiser and rule remember.
        """
        model = SoftmaxRegression(dataset.classes, dataset.features)
        slower = 2 if dtype == "float64" else 1
        sample = 2 * model.classes * model.width * slower
        whole = 2 * sample * len(dataset.train)  # scores, then gradients
        return Cost(
            bytes=(4 + remembered) * DTYPES[dtype].itemsize * agents * model.classes * model.width,
            step=whole if batch is None else 2 * sample * agents * batch,
            test=sample * len(dataset.test),
            gradients=whole,
        )

    def start(self) -> dict[str, Tensor]:
        vectors = torch.stack([self._starts[run.seed] for run in self.runs])
        models = self.model.unflatten(vectors).to(self.device, self.dtype).unsqueeze(1)
        return {"models": models.expand(-1, self.agents, -1, -1).clone()}

    def gradients(self, state: State, update: int, out: Tensor) -> Tensor:
        if self._sampled is not None:
            return self._sampled.gradients(state, update, out)
        gradients = self._way.gradients(state.models, state.iteration + 1, out)
        self._stamped.rewrite(state.models, state.iteration + 1, gradients)
        return gradients

    def gradients_at(
        self, common: Tensor, models: Tensor, iteration: int = 1
    ) -> tuple[Tensor, Tensor]:
        gradients, costs = self._way.gradients_at(common, models, iteration)
        everywhere = common.unsqueeze(1).expand_as(models)
        self._stamped.rewrite(everywhere, iteration, gradients, costs)
        return gradients, costs

    def losses(self, run: int, agent: int, models: Tensor, samples: int, iteration: int) -> Tensor:
        places = self.judging_samples(run, agent, samples, iteration)
        inputs = self._held.inputs(agent, places)
        inputs, labels = self._held.held(run, agent, places, iteration, inputs)
        samples_held = inputs.flatten(1)
        rows, features = models.reshape(-1, self.model.width), self.model.features
        scores = rows[:, :features] @ samples_held.T + rows[:, features : features + 1]
        scores = scores.view(len(models), self.model.classes, -1)
        # An attack that decides by scores goes by those of the own model.
        chosen = labels.by(scores[0].T)
        own = scores.gather(1, chosen.expand(len(models), 1, -1)).squeeze(1)
        return (scores.logsumexp(1) - own).mean(-1, dtype=torch.float64)

    @cached_property
    def _held(self) -> AgentSamples:
        return AgentSamples(self)

    def test(
        self,
        models: Tensor,
        buffers: Tensors,
        which: Sequence[int],
        loss: bool = False,
        trigger: LabelAttack | None = None,
    ) -> tuple[Tensor, Tensor]:
        if trigger not in self._tests:
            tested = self.tested(trigger)
            self._tests[trigger] = _TestSet(tested, self.model, self.dtype, self.device)
        tests = self._tests[trigger]

        def evaluate(first: int) -> tuple[Tensor, Tensor]:
            return tests.evaluate(models[list(which[first : first + TESTED])], loss)

        parts = self.workers.map(evaluate, range(0, len(which), TESTED))
        accuracy, cost = zip(*parts, strict=True)
        return torch.cat(accuracy), torch.cat(cost)

    def vectors(self, models: Tensor) -> Tensor:
        return self.model.flatten(models)

    def smoothness(self) -> float:
        """The best constant for the given samples."""
        from bezoar import theory

        design = self._design()
        places = (self.partition.samples(agent) for agent in range(self.agents))
        return theory.softmax_smoothness(design[held] for held in places)

    def initial_gap(self, run: int) -> float | None:
        """``f(x⁰) − f*`` with a lower bound for ``f*``; that is found once for the same agents.

        It takes the samples of all regular agents, so where some are elsewhere it is not known.
        """
        if self.agents < self.runs[run].network.agents:
            return None
        from bezoar import theory

        regular, start = self.runs[run].network.regular, self._starts[self.runs[run].seed]
        # Where everyone starts at zero, all classes are equally likely.
        first = float(np.log(self.dataset.classes))
        if regular in self._lowest and not start.any():
            return first - self._lowest[regular]
        held = [self.partition.samples(agent) for agent in regular]
        order = np.concatenate(held)
        weights = np.concatenate([np.full(len(own), 1 / (len(held) * len(own))) for own in held])
        design, labels = self._design()[order], self.dataset.train_labels[order]
        if regular not in self._lowest:
            self._lowest[regular] = theory.softmax_infimum(
                design, labels, weights, classes=self.dataset.classes, iterations=200
            ).lower
        if start.any():
            models = self.model.unflatten(start)[:, : design.shape[1]]
            scores = torch.from_numpy(design) @ models.T
            costs = cross_entropy(scores, torch.from_numpy(labels), reduction="none")
            first = float(torch.from_numpy(weights) @ costs)
        return first - self._lowest[regular]

    def _design(self) -> NDArray[np.float64]:
        """``[n, features + 1]`` the training samples as the model sees them, without padding."""
        design = self.model.design(self.dataset.train, torch.float64)
        return design[:, : self.dataset.features + 1].numpy()

    def identity(self) -> str:
        way = type(self._way).__name__
        return (
            f"softmax regression on {self.dataset.name}, {way}, {self._told}data and partition "
            f"{self.data_identity()}"
        )


class _TestSet:
    """The test samples, sorted by class, for the accuracy of many models at once."""

    def __init__(
        self, dataset: Dataset, model: SoftmaxRegression, dtype: torch.dtype, device: torch.device
    ) -> None:
        order = dataset.test_labels.argsort(kind="stable")
        self._samples = model.design(dataset.test[order], dtype).to(device)
        ends = dataset.test_labels[order].searchsorted(range(model.classes + 1)).tolist()
        self._blocks = [
            (kind, first, min(first + BLOCK, ends[kind + 1]))
            for kind in range(model.classes)
            for first in range(ends[kind], ends[kind + 1], BLOCK)
        ]

    def evaluate(self, models: Tensor, want_loss: bool) -> tuple[Tensor, Tensor]:
        """See :meth:`Task.test`. Of equally likely classes the lowest is predicted."""
        rows = models.reshape(-1, models.shape[-1])
        right = torch.zeros(len(models), dtype=torch.float64, device=models.device)
        loss = torch.zeros_like(right)
        for kind, first, last in self._blocks:
            scores = linear(rows, self._samples[first:last]).view(len(models), -1, last - first)
            own = scores[:, kind]
            wins = torch.ones_like(own, dtype=torch.bool)
            if kind > 0:
                wins &= own > scores[:, :kind].amax(1)
            if kind + 1 < scores.shape[1]:
                wins &= own >= scores[:, kind + 1 :].amax(1)
            right += wins.sum(-1)
            if want_loss:
                loss += (scores.logsumexp(1) - own).sum(-1, dtype=torch.float64)
        return right / len(self._samples), loss / len(self._samples)
