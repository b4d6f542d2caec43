"""What the agents learn."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from bezoar._arrays import Ints
from bezoar._checks import non_negative
from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar._seeds import Purpose, generator
from bezoar.aggregators import OutputLayer
from bezoar.attacks import LabelAttack
from bezoar.data import Dataset, Partition
from bezoar.networks import UnreliableNetwork
from bezoar.training._run import Run, State
from bezoar.training._workers import Workers

Start = TypeVar("Start")

#: Tensors by their names.
Tensors = Mapping[str, Tensor]

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Cost:
    """What one run takes, to plan with before it is trained.

    Attributes:
        bytes: of memory in training.
        step: floating-point operations of all agents' gradients in an iteration.
        test: floating-point operations of testing one model.
        gradients: floating-point operations of all agents' gradients for metrics.
    """

    bytes: float
    step: float
    test: float
    gradients: float


class Task(ABC):
    """What the agents of some runs learn: model, data and labels.

    Models are ``[runs, agents, …]``; what follows is the task's own affair.

    Args:
        runs: the runs, in the order of every tensor's first dimension.
        workers: the threads that share the work.
        dtype: ``"float32"`` or ``"float64"``.
        device: a torch device.
        members: the numbers of the agents that are trained here, ascending, in the order of every
            tensor's second dimension; by default all. Their numbers, not their places, decide
            random choices, so that an agent does the same wherever it is trained.
    """

    #: Whether there is something to test models on.
    tests: ClassVar[bool] = False

    #: What in the state belongs to each agent's model and is not exchanged.
    buffers: tuple[str, ...] = ()

    #: Where the output layer lies in a flattened model, if there is one.
    output_layer: OutputLayer | None = None

    def __init__(
        self,
        runs: Sequence[Run],
        workers: Workers,
        dtype: str = "float32",
        device: str = "cpu",
        members: Sequence[int] | None = None,
    ) -> None:
        check_runs(runs)
        self.runs = tuple(runs)
        self.members = check_members(members, runs[0].network.agents)
        self.agents = len(self.members)
        self.workers = workers
        self.dtype = choose("dtype", dtype, DTYPES)
        self.device = check_device(device)

    @abstractmethod
    def start(self) -> dict[str, Tensor]:
        """The state before the first iteration: ``"models"``, and whatever else is to be kept."""

    @abstractmethod
    def gradients(self, state: State, update: int, out: Tensor) -> Tensor:
        """Every agent's gradient ``∇f̂_w(x_w)`` at its own model.

        Args:
            state: where training stands. Tensors beside the models may be updated in place.
            update: which local update it is for, counted from 1 over all iterations.
            out: memory like the models, in which the result may be written.
        """

    @abstractmethod
    def gradients_at(
        self, common: Tensor, models: Tensor, iteration: int = 1
    ) -> tuple[Tensor, Tensor]:
        """Full gradients and costs of every agent, at one model for each run.

        Args:
            common: ``[runs, …]`` where to take them.
            models: ``[runs, agents, …]`` the agents' own models, by which dynamic attacks choose
                their labels.
            iteration: the iteration whose labels they are of, counted from 1.

        Returns:
            ``[runs, agents, …]`` gradients, and ``[runs, agents]`` costs, float64 and correct
            wherever labels are not dynamic.
        """

    def losses(self, run: int, agent: int, models: Tensor, samples: int, iteration: int) -> Tensor:
        """``[m]`` the cost of flat models ``[m, D]`` on some of one agent's samples, float64.

        Args:
            run: in which run; the agent's labels are those that it holds there.
            agent: the place of the agent among the members.
            models: whose costs.
            samples: how many samples are drawn, in every iteration anew.
            iteration: which iteration it is.
        """
        raise BezoarError("losses: this task has none of single models")

    def test(
        self,
        models: Tensor,
        buffers: Tensors,
        which: Sequence[int],
        loss: bool = False,
        trigger: LabelAttack | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Accuracy and mean cross-entropy on the test set of some of the models ``[n, …]``.

        Args:
            models: ``[n, …]``.
            buffers: ``[n, …]`` for each name in :attr:`buffers`.
            which: the numbers of the models to test.
            loss: whether the second result is needed.
            trigger: an attack whose patch test samples get. Then those of its target class are left
                out, and the target is right for all others.

        Returns:
            The accuracy and the loss of each tested model, float64.
        """
        raise BezoarError("metrics: this task has nothing to test models on")

    def average_buffers(self, state: State, weights: Tensor) -> dict[str, Tensor]:
        """``[runs, …]`` the buffers of an average model with weights ``[runs, agents]``."""
        return {}

    @property
    def details(self) -> Mapping[str, Any]:
        """How it computes, as far as that is worth telling beside results."""
        return {}

    def vectors(self, models: Tensor) -> Tensor:
        """``[runs, agents, D]`` models as users get them."""
        return models.flatten(2)

    def smoothness(self) -> float | None:
        """``L`` of Assumption 2 for every agent's cost, if the task knows it."""
        return None

    def initial_gap(self, run: int) -> float | None:
        """``f(x⁰) − f*`` of one run or a little more, if the task knows it."""
        return None

    @abstractmethod
    def identity(self) -> str:
        """A text that differs from that of any other task, the runs aside; for checkpoints."""


def check_runs(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot be trained together, or not at all."""
    if not runs:
        raise BezoarError("runs: at least one is needed")
    sizes = sorted({run.network.agents for run in runs})
    if len(sizes) > 1:
        raise BezoarError(f"runs: all networks must have the same number of agents, found {sizes}")
    for run in runs:
        for network in run.network.turns:
            run.aggregator.check(network)
            run.attack.check_network(network)
        if run.aggregator.sums_updates() and run.network.changes:
            raise BezoarError(
                f"aggregator {run.aggregator.name}: it sums up what each neighbour changes, so the "
                "network must not change over time"
            )
        if isinstance(run.network, UnreliableNetwork) and run.aggregator.inputs_needed(0) > 1:
            raise BezoarError(
                f"aggregator {run.aggregator.name}: it needs {run.aggregator.inputs_needed(0)} "
                "inputs, but where links or agents are silent, an agent may have its own alone; "
                "choose another rule, or let nobody be silent"
            )
        if non_negative("weight_decay", run.weight_decay) == inf:
            raise BezoarError("weight_decay: expected a finite number, found inf")


def check_members(members: Sequence[int] | None, agents: int) -> tuple[int, ...]:
    """The agents that are trained, ascending; by default all."""
    found = tuple(range(agents) if members is None else members)
    if not found or list(found) != sorted(set(found) & set(range(agents))):
        raise BezoarError(
            f"members: expected ascending agents of 0 … {agents - 1}, found {list(found)}"
        )
    return found


class DatasetTask(Task):
    """A task on a dataset whose training samples are divided among the agents.

    Args:
        dataset: the samples.
        partition: which agent of the network holds which of the training samples.
        runs, workers, dtype, device, members: as for :class:`Task`.

    Attributes:
        partition: which of the members holds which of the samples.
        largest_part: how many samples an agent of the network holds at the most.
    """

    tests = True

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        runs: Sequence[Run],
        workers: Workers,
        dtype: str,
        device: str,
        members: Sequence[int] | None,
    ) -> None:
        super().__init__(runs, workers, dtype, device, members)
        if partition.agents != runs[0].network.agents:
            raise BezoarError(
                f"partition: made for {partition.agents} agents, but the {runs[0].network.name} "
                f"network has {runs[0].network.agents}"
            )
        for run in runs:
            run.attack.check(dataset.classes)
            run.attack.check_samples(dataset.train)
        self.dataset, self.largest_part = dataset, int(partition.sizes.max())
        self.partition = partition if members is None else partition.only(self.members)
        if not self.partition.sizes.all():
            empty = self.members[int(self.partition.sizes.argmin())]
            raise BezoarError(
                f"partition: agent {empty} holds no samples; every agent needs one at least"
            )
        self._triggered: dict[LabelAttack, Dataset] = {}

    def tested(self, trigger: LabelAttack | None) -> Dataset:
        """The dataset whose test samples are tested on; see :meth:`Task.test`."""
        if trigger is None:
            return self.dataset
        if trigger not in self._triggered:
            self._triggered[trigger] = _with_trigger(self.dataset, trigger)
        return self._triggered[trigger]

    def judging_samples(self, run: int, agent: int, samples: int, iteration: int) -> Ints:
        """Which of its samples an agent takes the losses of its inputs on, in one iteration."""
        rng = generator(self.runs[run].seed, Purpose.JUDGING, self.members[agent], iteration)
        held = int(self.partition.sizes[agent])
        chosen: Ints = rng.choice(held, size=min(samples, held), replace=False)
        return chosen

    def data_identity(self) -> str:
        """A checksum of the data and of who holds what."""
        digest = hashlib.sha256(self.dataset.fingerprint.encode())
        if self.agents < self.runs[0].network.agents:
            digest.update(f"of agents {self.members}".encode())
        for part in (self.partition.order, self.partition.offsets):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


def _with_trigger(dataset: Dataset, attack: LabelAttack) -> Dataset:
    """Test samples whose label an attack changes, with its patch and its labels."""
    true = dataset.test_labels
    changed = attack.eligible(true)
    labels = attack.corrupt(true, dataset.classes, np.random.default_rng(0))[changed]
    patch = attack.patch(dataset.sample_shape)
    stamped = np.where(patch, np.uint8(255), dataset.test[changed])
    return replace(dataset, test=stamped, test_labels=labels)


def start_of(start: Mapping[int, Start], seed: int) -> Start:
    """Where the runs of one seed start."""
    if seed not in start:
        known = ", ".join(map(str, start)) or "none"
        raise BezoarError(f"start: expected one for the seed {seed} of a run, found seeds {known}")
    return start[seed]


def check_device(name: str) -> torch.device:
    """The device, or an error if torch does not know it or this machine does not have it."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
        if device.type == "meta":
            raise RuntimeError("it computes nothing")
        if device.type == "cpu" and device.index:
            raise RuntimeError("all cores are one device")
        return device
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise BezoarError(
            f"device: {name!r} cannot be used here ({reason}); allowed: cpu, and cuda, mps and the "
            "like where torch finds them"
        ) from None
