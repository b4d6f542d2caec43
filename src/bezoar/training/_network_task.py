"""Neural networks with stochastic gradients."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bezoar._arrays import Ints
from bezoar._checks import whole
from bezoar._options import choose
from bezoar._seeds import Purpose, generator
from bezoar.attacks import LabelAttack
from bezoar.data import Dataset, Partition
from bezoar.models import ModelFactory, make, pool_buffers, set_weights
from bezoar.training._agent_samples import AgentSamples, Labels
from bezoar.training._batches import Batches, Order, check_batches
from bezoar.training._flat_model import BUFFERS, FlatModel, Lender, operations_of
from bezoar.training._judges import averages_that_judge, check_model_judges
from bezoar.training._run import Run, State
from bezoar.training._task import DTYPES, Cost, DatasetTask, Tensors, start_of
from bezoar.training._workers import Workers, torch_at

#: Types in which products may be computed on request.
AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16}

#: Test samples evaluated at a time.
TESTED = 256

#: The name in the state of the number of threads, which stays on the host.
THREADS = "threads"


class NetworkTask(DatasetTask):
    """Any :class:`torch.nn.Module` on a dataset that is divided among the agents.

    An agent's gradient is that of the mean cross-entropy over a batch of its own samples, see
    :class:`~bezoar.training._batches.Batches`. Models are ``[runs, agents, D]``: the weight of the
    output layer first, then the other parameters in the module's order. How parameters lie in
    memory, whose buffers are, and on which threads agents are computed is in docs/training.md.

    Gradients for metrics (ξ, A, the cost f) are those of the cost that is trained: means over all
    local samples, or over ``gradient_samples`` of them, in parts as large as what training computes
    at a time and in training mode, without augmentation.

    Args:
        dataset, partition, runs, workers, dtype, device, members: as for :class:`DatasetTask`.
        model: makes the module, which turns inputs ``[n, …]`` into scores ``[n, classes]``.
        batch: samples in a batch.
        order: how agents go through their samples: ``"random"`` or ``"consecutive"``.
        augment: whether images are cropped and mirrored at random.
        accumulate: in how many parts a batch is computed one after the other, to save memory.
        start: for each run's seed the state dict that everyone starts with: parameters, and buffers
            such as the statistics of batch norm. By default that of :func:`~bezoar.models.make`.
        gradient_samples: how many of its samples an agent's gradient is measured on, always the
            same ones, drawn at random; by default all.
        autocast: ``"bfloat16"`` or ``"float16"``: compute products in this type. Not every
            processor can.
        threads: 1 to compute agents side by side; more to compute them one after the other, each
            operation on this many threads. By default what is faster when training starts.
    """

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        runs: Sequence[Run],
        workers: Workers,
        *,
        model: ModelFactory,
        batch: int = 32,
        order: Order = "random",
        augment: bool = False,
        accumulate: int = 1,
        start: Mapping[int, Tensors] | None = None,
        gradient_samples: int | None = None,
        autocast: str | None = None,
        threads: int | None = None,
        dtype: str = "float32",
        device: str = "cpu",
        members: Sequence[int] | None = None,
    ) -> None:
        super().__init__(dataset, partition, runs, workers, dtype, device, members)
        self.augment, self.accumulate, self.threads = augment, accumulate, threads
        self.gradient_samples, self.autocast = gradient_samples, autocast
        self.batches = Batches(self.partition.sizes, batch, order, self.members)
        self._check_options()
        self._samples = AgentSamples(self)
        seeds = dict.fromkeys(run.seed for run in self.runs)
        made = {seed: self._made(model, seed, start) for seed in seeds}
        self._model = made[self.runs[0].seed]
        self.output_layer = self._model.output_layer
        self.buffers = tuple(BUFFERS + name for name in self._model.initial_buffers)
        self._starts = {seed: each.start for seed, each in made.items()}
        self._buffers = {seed: each.initial_buffers for seed, each in made.items()}
        count = min(2, batch // accumulate)
        inputs = self._samples.inputs(0, np.zeros(count, dtype=np.int64))
        self._least = self._model.samples_needed(inputs, dataset.classes)
        self._lent = Lender(self._model)
        self._read: tuple[Tensor | None, int] = None, 1

    def _check_options(self) -> None:
        for run in self.runs:
            check_model_judges(run.attack)
        whole("accumulate", self.accumulate, 1)
        for field in ("gradient_samples", "threads"):
            if getattr(self, field) is not None:
                whole(field, getattr(self, field), 1)
        check_batches(self.batches.batch, self.accumulate, self.augment, self.dataset.sample_shape)
        if self.autocast is not None:
            choose("autocast", self.autocast, AUTOCAST)

    def _made(self, model: ModelFactory, seed: int, start: Any) -> FlatModel:
        """The model that everyone starts with in runs of one seed; ``start`` as for the task."""
        module = make(model, seed).to(device=self.device, dtype=self.dtype)
        if start is not None:
            set_weights(module, start_of(start, seed), told=f"start: what is given for seed {seed}")
        return FlatModel(module)

    @staticmethod
    def cost(
        dataset: Dataset,
        agents: int,
        dtype: str,
        remembered: int = 0,
        *,
        model: ModelFactory,
        batch: int = 32,
        local_steps: int = 1,
        gradient_samples: int | None = None,
    ) -> Cost:
        """What a run takes; only products and convolutions are counted.

        The first arguments are those of :meth:`SoftmaxTask.cost`, the others those of the task.
        """
        with torch.device("meta"):
            module = model().eval()
        sample = operations_of(module, dataset.train.shape[1:]) * (2 if dtype == "float64" else 1)
        size = sum(p.numel() for p in module.parameters())
        measured = len(dataset.train)
        if gradient_samples is not None:
            measured = min(measured, agents * gradient_samples)
        more = remembered + (local_steps > 1)
        return Cost(
            bytes=(2 + more) * DTYPES[dtype].itemsize * agents * size,
            step=3 * sample * agents * batch * local_steps,  # forward, and twice as much backward
            test=sample * len(dataset.test),
            gradients=3 * sample * measured,
        )

    def start(self) -> dict[str, Tensor]:
        def alike(values: Sequence[Tensor]) -> Tensor:
            together = torch.stack(list(values)).unsqueeze(1)
            return together.expand(-1, self.agents, *together.shape[2:]).clone()

        seeds = [run.seed for run in self.runs]
        if self.threads is None:
            self.threads = 1
            if self.device.type == "cpu":
                pieces = len(self.runs) * self.agents
                self.threads = self.workers.fastest_threads(self._try, pieces)
        buffers = {
            BUFFERS + name: alike([self._buffers[seed][name] for seed in seeds])
            for name in self._model.initial_buffers
        }
        models = alike([self._starts[seed] for seed in seeds])
        threads = torch.full((len(self.runs),), self.threads)
        return {"models": models, **buffers, THREADS: threads}

    def gradients(self, state: State, update: int, out: Tensor) -> Tensor:
        threads = self._threads_of(state)
        drawn = [(seed, agent) for agent in range(self.agents) for seed in self._starts]
        loaded = self.workers.map(lambda who: self._draw(*who, update), drawn)
        batches = dict(zip(drawn, loaded, strict=True))
        buffers = {name.removeprefix(BUFFERS): state.tensors[name] for name in self.buffers}
        averages = averages_that_judge(self.runs, self.members, state.models)

        def differentiate(piece: tuple[int, int]) -> None:
            run, agent = piece
            places, inputs = batches[self.runs[run].seed, agent]
            upcoming = state.iteration + 1
            inputs, labels = self._samples.held(run, agent, places, upcoming, inputs)
            if labels.dynamic is not None and run in averages:
                labels = labels.decided(self._scores_in_training(run, averages[run], inputs))
            own = {name: values[run, agent] for name, values in buffers.items()}
            into = out[run, agent].zero_()
            vector, parts = state.models[run, agent], self.accumulate
            self._add_gradient(vector, own, inputs, labels, into, parts=parts)

        pieces = [(run, agent) for agent in range(self.agents) for run in range(len(self.runs))]
        if threads == 1:
            self.workers.map(differentiate, pieces)
        else:
            with torch_at(threads):
                for piece in pieces:
                    differentiate(piece)
        return out

    def _threads_of(self, state: State) -> int:
        """How agents are computed, read once for all states of a training."""
        told = state.tensors[THREADS]
        if told is not self._read[0]:
            self.threads = int(told[0])
            self._read = told, self.threads
        return self._read[1]

    def _draw(self, seed: int, agent: int, update: int) -> tuple[Ints, Tensor]:
        """The batch of an agent in runs of one seed: which of its samples, and these."""
        places = self.batches.places(seed, agent, update)
        who = self.members[agent]
        rng = generator(seed, Purpose.AUGMENTATION, who, update) if self.augment else None
        return places, self._samples.inputs(agent, places, rng)

    def _add_gradient(
        self,
        vector: Tensor,
        buffers: Tensors,
        inputs: Tensor,
        labels: Labels,
        out: Tensor,
        share: float = 1.0,
        parts: int = 1,
    ) -> Tensor:
        """Add the gradient over some samples, times ``share``, to ``out [D]``.

        They are computed in ``parts`` of equal size, one after the other.

        Returns:
            The mean cross-entropy, times ``share``.
        """
        costs = []
        size = len(inputs) // parts
        with self._lent(training=True) as model, torch.enable_grad():
            model.bind(vector, buffers, out)
            for first in range(0, len(inputs), size):
                part = slice(first, first + size)
                with self._in_its_type():
                    scores = model.scores(inputs[part])
                here = labels.some(part).by(scores)
                part_of_mean = share * len(here) / len(inputs)
                cost = cross_entropy(scores.to(self.dtype), here) * part_of_mean
                cost.backward()
                costs.append(cost.detach())
            model.keep_buffers(buffers)
        return torch.stack(costs).sum()

    def gradients_at(
        self, common: Tensor, models: Tensor, iteration: int = 1
    ) -> tuple[Tensor, Tensor]:
        gradients = torch.zeros_like(models)
        costs = torch.zeros(models.shape[:2], dtype=torch.float64, device=self.device)
        averages = averages_that_judge(self.runs, self.members, models)

        def differentiate(piece: tuple[int, int]) -> None:
            agent, seed = piece
            for places, share in self._measured(agent, seed):
                inputs = self._samples.inputs(agent, places)
                for run in (place for place, run in enumerate(self.runs) if run.seed == seed):
                    seen, labels = self._samples.held(run, agent, places, iteration, inputs)
                    if labels.dynamic is not None:
                        judge = averages.get(run, models[run, agent])
                        labels = labels.decided(self._scores_in_training(run, judge, seen))
                    scratch = self._fresh_buffers(run)
                    out = gradients[run, agent]
                    cost = self._add_gradient(common[run], scratch, seen, labels, out, share)
                    costs[run, agent] += cost

        pieces = [(agent, seed) for agent in range(self.agents) for seed in self._starts]
        self.workers.map(differentiate, pieces)
        return gradients, costs

    def _measured(self, agent: int, seed: int) -> Iterator[tuple[Ints, float]]:
        """The samples that an agent's gradient is measured on, in parts, and each part's share."""
        places = np.arange(self.partition.sizes[agent])
        if self.gradient_samples is not None:
            rng = generator(seed, Purpose.GRADIENT_SAMPLES, self.members[agent])
            places = np.sort(rng.permutation(places)[: self.gradient_samples])
        together = self.batches.batch // self.accumulate
        for part in np.array_split(places, -(-len(places) // together)):
            yield self._enough(part), len(part) / len(places)

    def _enough(self, places: Ints) -> Ints:
        """A sample that is alone twice, as in a batch, if the module needs several at a time."""
        return places if len(places) >= self._least else places.repeat(self._least)

    def _scores_in_training(self, run: int, vector: Tensor, inputs: Tensor) -> Tensor:
        """``[n, classes]`` the scores of a model ``[D]``, as it has them when it is trained."""
        with self._lent(training=True) as model, torch.no_grad(), self._in_its_type():
            model.bind(vector, self._fresh_buffers(run))
            return model.scores(inputs)

    def losses(self, run: int, agent: int, models: Tensor, samples: int, iteration: int) -> Tensor:
        places = self._enough(self.judging_samples(run, agent, samples, iteration))
        inputs, found, chosen = self._samples.inputs(agent, places), [], None
        inputs, held = self._samples.held(run, agent, places, iteration, inputs)
        with torch.inference_mode(False):
            for vector in models.clone():
                scores = self._scores_in_training(run, vector, inputs).to(self.dtype)
                # An attack that decides by scores goes by those of the own model.
                chosen = held.by(scores) if chosen is None else chosen
                found.append(cross_entropy(scores, chosen).to(torch.float64))
        return torch.stack(found)

    def _fresh_buffers(self, run: int) -> dict[str, Tensor]:
        """Buffers that may be written to: training mode works by the batch's own statistics."""
        initial = self._buffers[self.runs[run].seed]
        return {name: values.clone() for name, values in initial.items()}

    def average_buffers(self, state: State, weights: Tensor) -> dict[str, Tensor]:
        return pool_buffers({name: state.tensors[name] for name in self.buffers}, weights)

    @property
    def details(self) -> Mapping[str, Any]:
        together = "side by side" if self.threads == 1 else "one after the other"
        return {"agents_computed": together, "threads_of_an_operation": self.threads}

    def test(
        self,
        models: Tensor,
        buffers: Tensors,
        which: Sequence[int],
        loss: bool = False,
        trigger: LabelAttack | None = None,
    ) -> tuple[Tensor, Tensor]:
        dataset = self.tested(trigger)

        def evaluate(first: int) -> Tensor:
            inputs, labels = self._samples.tests(slice(first, first + TESTED), dataset)
            found = []
            with self._lent(training=False) as model, torch.no_grad():
                for number in which:
                    own = {n.removeprefix(BUFFERS): b[number] for n, b in buffers.items()}
                    model.bind(models[number], own)
                    with self._in_its_type():
                        scores = model.scores(inputs)
                    scores = scores.double()
                    # Scores that are not finite are never right.
                    right = (scores.argmax(1) == labels) & scores.isfinite().all(1)
                    cost = cross_entropy(scores, labels, reduction="sum")
                    found.append(torch.stack([right.sum().double(), cost]))
            return torch.stack(found)

        count = len(dataset.test)
        parts = self.workers.map(evaluate, range(0, count, TESTED))
        accuracy, cost = (torch.stack(parts).sum(0) / count).unbind(-1)
        return accuracy, cost

    def vectors(self, models: Tensor) -> Tensor:
        return self._model.vectors(models)

    def identity(self) -> str:
        digest = hashlib.sha256()
        for seed, vector in self._starts.items():
            digest.update(vector.cpu().numpy().tobytes())
            for values in self._buffers[seed].values():
                digest.update(values.cpu().numpy().tobytes())
        structure = f"{self._model.module!r} {self._model.shapes}"
        return (
            f"network {hashlib.sha256(structure.encode()).hexdigest()} from "
            f"{digest.hexdigest()} on {self.dataset.name}, batches of {self.batches.batch} in "
            f"{self.batches.order} order in {self.accumulate} parts, augmentation {self.augment}, "
            f"autocast {self.autocast}, gradients measured on {self.gradient_samples or 'all'} "
            f"samples, data and partition {self.data_identity()}"
        )

    def _in_its_type(self) -> Any:
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=AUTOCAST[self.autocast])

    def _try(self, number: int) -> None:
        """Compute some agent's first gradient, to see how long it takes."""
        agent, seed = number % self.agents, self.runs[0].seed
        places, inputs = self._draw(seed, agent, update=1)
        inputs, labels = self._samples.held(0, agent, places, 1, inputs)
        vector, buffers = self._starts[seed], self._fresh_buffers(0)
        into = torch.zeros_like(vector)
        self._add_gradient(vector, buffers, inputs, labels, into, parts=self.accumulate)
