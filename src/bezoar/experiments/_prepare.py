"""From a spec to what is trained: every part is made and checked once."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from bezoar import data, models, training
from bezoar._errors import BezoarError
from bezoar.experiments._identity import identity
from bezoar.experiments._made import dataset_of, network_of, part, partition_of
from bezoar.experiments._spec import RunSpec
from bezoar.models import Model, Pretrained, Softmax, Start
from bezoar.networks import Network, Shard, UnreliableNetwork
from bezoar.store import StoredRun
from bezoar.training import (
    Algorithm,
    AllRanks,
    Checkpoint,
    Cost,
    Engine,
    Exchanges,
    History,
    NetworkTask,
    Ranks,
    Run,
    Sharded,
    SoftmaxTask,
    Task,
    Workers,
)

#: A trained model: its parameters and buffers by name.
Tensors = Mapping[str, Tensor]

#: How many agents share a batch of a pretraining.
AGENTS = 4

#: Called by an engine with the number of iterations done, and the latest metrics.
Report = Callable[[int, dict[str, Tensor]], Any]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run, ready to be trained.

    Attributes:
        spec: what it is.
        network: who is linked to whom, and who is poisoned; links that may be silent included.
        dataset: what is learned from.
        model: what is trained.
        algorithm: what an iteration makes of the models.
        run: its parts.
    """

    spec: RunSpec
    network: Network
    dataset: data.Dataset
    model: Model
    algorithm: Algorithm
    run: Run

    @cached_property
    def key(self) -> str:
        """Its name in a store."""
        return identity(self.spec, self.network, self.dataset)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """What is measured."""
        return tuple(training.METRICS) if self.spec.metrics is None else self.spec.metrics

    @cached_property
    def together(self) -> Hashable:
        """What runs must have in common to be stepped together."""
        spec = self.spec
        own = {"network", "poisoned", "attack", "aggregator", "optimizer", "schedule"}
        own |= {"weight_decay", "keep_models", "metrics", "dataset"}
        own |= {"silent_links", "silent_agents"}
        shared = tuple(getattr(spec, field) for field in RunSpec.model_fields if field not in own)
        return (*shared, self.dataset, self.network.agents, self.metrics)

    @cached_property
    def needs(self) -> "Prepared | None":
        """The run whose final model it starts from, if there is one."""
        spec = pretraining(self.spec, self.dataset)
        return None if spec is None else prepare(spec)

    @cached_property
    def cost(self) -> Cost:
        """The memory and the operations that it takes."""
        spec, agents = self.spec, self.network.agents
        remembered = len(self.run.optimizer.remembers) + bool(self.run.aggregator.remembers())
        remembered += len(self.algorithm.remembers) + (spec.rounds > 1)
        if isinstance(self.model, Softmax):
            if self.run.aggregator.sums_updates():  # of every input, before and after an exchange
                remembered += 2 * (1 + int(self.network.at(1).degrees.max()))
            return SoftmaxTask.cost(self.dataset, agents, spec.dtype, remembered, spec.batch)
        return NetworkTask.cost(
            self.dataset,
            agents,
            spec.dtype,
            remembered,
            model=self.module,
            batch=spec.batch or len(self.dataset.train),
            local_steps=spec.local_steps,
            gradient_samples=spec.gradient_samples,
        )

    def module(self) -> nn.Module:
        """A module of its model, with whatever parameters torch gives it."""
        return self.model.module(self.dataset.sample_shape, self.dataset.classes)

    def average_model(self, run: "History | StoredRun") -> Tensors:
        """The average of all agents' final models, by the names of its tensors."""
        return training.average_model(self.module(), run.models, run.buffers)

    def begin(self, trained: Tensors | None) -> Tensors:
        """Where it starts: parameters and buffers by name."""
        start: Start = part(self.spec.start)
        module = models.make(self.module, self.spec.seed)
        start.begin(module, trained)
        return module.state_dict()

    @property
    def operations(self) -> float:
        """The floating-point operations it takes."""
        spec, regular = self.spec, len(self.network.regular)
        return training.operations(self.cost, spec.iterations, spec.every, self.metrics, regular)

    def partition(self) -> data.Partition:
        """Which agent holds which samples."""
        return partition_of(self.spec, self.network.agents, self.dataset)


def prepare(spec: RunSpec) -> Prepared:
    """Make the parts of a run, and refuse what cannot be run for any reason but its partition.

    Raises:
        BezoarError: with the field, what was found and what is allowed.
    """
    network, dataset = network_of(spec), dataset_of(spec)
    silent = {"silent_links": spec.silent_links, "silent_agents": spec.silent_agents}
    heard = (
        UnreliableNetwork(network, seed=spec.seed, **silent) if any(silent.values()) else network
    )
    run = Run(
        network=heard,
        aggregator=part(spec.aggregator),
        attack=part(spec.attack),
        schedule=part(spec.schedule),
        weight_decay=spec.weight_decay,
        seed=spec.seed,
        optimizer=part(spec.optimizer),
    )
    training.check_runs([run])
    training.check_device(spec.device)
    run.attack.check(dataset.classes)
    run.attack.check_samples(dataset.train)
    algorithm: Algorithm = part(spec.algorithm)
    algorithm.check(run, spec.local_steps, spec.rounds)
    model: Model = part(spec.model)
    if not isinstance(model, Softmax):
        training.check_model_judges(run.attack)
    _check_fields(spec, isinstance(model, Softmax), dataset)
    return Prepared(spec, network, dataset, model, algorithm, run)


def pretraining(spec: RunSpec, dataset: data.Dataset) -> RunSpec | None:
    """The spec of the run whose final model a run on a dataset starts from, if it needs one.

    The average of agents that all hear each other follows central training, so that is what it is:
    four agents, each with a quarter of every batch, and the mean of their models after every
    update. Nobody is poisoned. Its bits do not depend on the number of threads.
    """
    start = part(spec.start)
    if not isinstance(start, Pretrained):
        return None
    epoch = -(-len(dataset.train) // start.batch)
    return RunSpec.read(
        {
            "dataset": spec.dataset,
            "samples": spec.samples,
            "model": spec.model,
            "network": {"name": "complete", "agents": AGENTS, "poisoned": 0},
            "aggregator": "mean",
            "optimizer": {"name": "nesterov", "beta": start.beta},
            "schedule": {"name": "one_cycle", "scale": start.step},
            "weight_decay": start.weight_decay,
            "batch": start.batch // AGENTS,
            "augment": start.augment,
            "iterations": start.epochs * epoch,
            "every": epoch,
            "metrics": ("accuracy", "test_loss"),
            "dtype": spec.dtype,
            "device": spec.device,
            "seed": start.seed,
            "keep_models": True,
        }
    )


def _check_fields(spec: RunSpec, softmax: bool, dataset: data.Dataset) -> None:
    """Refuse fields that mean nothing for the model or the data."""
    training.check_listening(spec.listening, spec.iterations)
    defaults = RunSpec.model_fields
    for field in ("augment", "accumulate", "autocast", "gradient_samples"):
        found = getattr(spec, field)
        if softmax and found != defaults[field].default:
            raise BezoarError(f"{field}: softmax regression does not use it, found {found!r}")
    if spec.order != defaults["order"].default and spec.batch is None:
        raise BezoarError(f"order: {spec.order!r} is an order of batches; give a batch, too")
    training.check_batches(spec.batch or 1, spec.accumulate, spec.augment, dataset.sample_shape)


def train(
    runs: Sequence[Prepared],
    workers: Workers,
    progress: Report | None = None,
    start: Checkpoint | None = None,
    keep: Callable[[Checkpoint], Any] | None = None,
    trained: Tensors | None = None,
) -> list[History]:
    """Train runs that are alike in :attr:`Prepared.together`, together.

    The same runs in the same order give the same bits; other company gives other last bits.

    ``progress``, ``start`` and ``keep`` are as for :meth:`Engine.train`; ``trained`` is the final
    model of the run that they need, if they need one. There is one history a run, in their order.
    """
    return make_engine(runs, workers, trained).train(progress, start=start, keep=keep)


def make_engine(
    runs: Sequence[Prepared],
    workers: Workers,
    trained: Tensors | None = None,
    device: str | None = None,
) -> Engine:
    """The engine for :func:`train`; it computes on the specs' device unless another is given."""
    spec = runs[0].spec
    return Engine(
        _task(runs, workers, trained, runs[0].partition(), device=device),
        iterations=spec.iterations,
        every=spec.every,
        metrics=runs[0].metrics,
        local_steps=spec.local_steps,
        rounds=spec.rounds,
        algorithm=runs[0].algorithm,
        agent_metrics=spec.agent_metrics,
        listening=spec.listening,
    )


def one_agent(
    run: Prepared,
    agent: int,
    workers: Workers,
    partition: data.Partition,
    exchanges: Callable[[Task], Exchanges],
) -> Engine:
    """The engine that trains one agent of a run, while the others are trained elsewhere.

    Its accuracy and test loss are measured; metrics of several agents' models are not.

    Args:
        run: what is run.
        agent: the number of the agent.
        workers: the threads that share the work.
        partition: which agent holds which samples; all but this one may hold none.
        exchanges: how it exchanges messages with the others, made from what it learns.
    """
    task = _task([run], workers, None, partition, (agent,))
    return Engine(
        task,
        iterations=run.spec.iterations,
        every=run.spec.every,
        local_steps=run.spec.local_steps,
        algorithm=run.algorithm,
        agent_metrics=True,
        exchanges=exchanges(task),
    )


def one_shard(run: Prepared, shard: Shard, workers: Workers, ranks: Ranks) -> Engine:
    """The engine that trains one shard of a run's network; other ranks train the others."""
    members = tuple(shard.members.tolist())
    task = _task([run], workers, None, run.partition(), members)
    return Engine(
        task,
        iterations=run.spec.iterations,
        every=run.spec.every,
        metrics=run.metrics,
        local_steps=run.spec.local_steps,
        agent_metrics=run.spec.agent_metrics,
        exchanges=Sharded(task, ranks, shard),
        everyone=AllRanks(ranks, shard, run.network.agents),
    )


def _task(
    runs: Sequence[Prepared],
    workers: Workers,
    trained: Tensors | None,
    partition: data.Partition,
    members: Sequence[int] | None = None,
    device: str | None = None,
) -> Task:
    """What the runs learn."""
    first, spec = runs[0], runs[0].spec
    described = (first.dataset, partition, [each.run for each in runs], workers)
    common: dict[str, Any] = {"order": spec.order, "dtype": spec.dtype, "members": members}
    common["device"] = device or spec.device
    begun = first.begin(trained)
    if isinstance(first.model, Softmax):
        vector = torch.cat([begun["output.weight"].flatten(), begun["output.bias"]])
        return SoftmaxTask(*described, batch=spec.batch, start={spec.seed: vector}, **common)
    return NetworkTask(
        *described,
        model=first.module,
        batch=spec.batch or 1,
        start={spec.seed: begun},
        augment=spec.augment,
        accumulate=spec.accumulate,
        autocast=spec.autocast,
        gradient_samples=spec.gradient_samples,
        **common,
    )
