"""Algorithm 1 for many runs at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._registry import choose
from bezoar.aggregators import Exchange, is_dense
from bezoar.training._checkpoint import Checkpoint, Taken, subject_of
from bezoar.training._costs import LocalCosts
from bezoar.training._few_agents import FewAgents
from bezoar.training._many_agents import ManyAgents
from bezoar.training._metrics import METRICS, Meter
from bezoar.training._run import Problem, Run
from bezoar.training._workers import Workers

#: Agents who hold fewer samples than this are trained in batches of agents.
FEW_SAMPLES = 200

DTYPES = {"float32": torch.float32, "float64": torch.float64}


#: Is told of an exchange: the iteration, what was sent, what became of it.
Observer = Callable[[int, Tensor, Tensor], Any]


@dataclass(frozen=True)
class State:
    """Where training stands.

    Attributes:
        iteration: how many iterations are done.
        models: ``[runs, agents, classes, width]``.
        share: ``[runs, agents]`` the weight given to poisoned agents in the last exchange, if it
            was asked for.
    """

    iteration: int
    models: Tensor
    share: Tensor | None = None


@dataclass(frozen=True)
class History:
    """What was measured of one run.

    Attributes:
        iterations: ``[n]`` after how many iterations.
        metrics: ``[n]`` values for each metric.
        models: ``[agents, D]`` the final models: weights class by class, then biases.
    """

    iterations: NDArray[np.int64]
    metrics: dict[str, NDArray[np.float64]]
    models: Tensor

    def __getitem__(self, metric: str) -> NDArray[np.float64]:
        return self.metrics[metric]

    @property
    def diverged(self) -> bool:
        """Whether some agent's model is no longer finite."""
        return not bool(torch.isfinite(self.models).all())


class Engine:
    """Steps runs that share a problem, together.

    Args:
        problem: what the runs share.
        runs: what differs between them.
        workers: who computes.
        make_costs: makes the agents' local costs from the runs, in the order given to it; by
            default softmax regression on the problem's dataset.
    """

    def __init__(
        self,
        problem: Problem,
        runs: Sequence[Run],
        workers: Workers,
        make_costs: Callable[[Sequence[Run]], LocalCosts] | None = None,
    ) -> None:
        check_runs(problem, runs)
        self.problem = problem
        # Runs that are aggregated by one call lie side by side.
        self._order = sorted(range(len(runs)), key=_sorter(runs))
        self.runs = [runs[place] for place in self._order]
        self._workers = workers
        device, dtype = torch.device(problem.device), DTYPES[problem.dtype]
        self.costs = (
            make_costs(self.runs) if make_costs else softmax_costs(problem, self.runs, workers)
        )
        self.meter = Meter(self.runs, problem.metrics, problem.dataset, self.costs, workers)
        self._exchanges = []
        first = 0
        for _, group in groupby(self.runs, key=_together):
            part = list(group)
            exchange = Exchange(
                [run.aggregator for run in part],
                [run.network for run in part],
                device,
                workers.map,
            )
            self._exchanges.append((slice(first, first + len(part)), exchange))
            first += len(part)
        self._spare: Tensor | None = None  # the models before the last, to be written over
        self._weight_decay = torch.tensor(
            [run.weight_decay for run in self.runs], dtype=dtype, device=device
        )

    def start(self) -> State:
        """The common starting point."""
        return State(0, self.costs.start())

    def step(self, state: State, observe: Observer | None = None) -> State:
        """One iteration: local updates, exchange, aggregation. ``state`` is used up."""
        iteration = state.iteration + 1
        self.local_updates(state.models, iteration)
        share = self._is_measured(iteration) and self.meter.wants_share
        models, shares = self.aggregate(state.models, share)
        if observe is not None:
            observe(iteration, state.models, models)
        return State(iteration, models, shares)

    def local_updates(self, models: Tensor, iteration: int) -> None:
        """Every agent's gradient step of one iteration, in place."""
        steps = torch.tensor(
            [run.schedule(iteration, self.problem.iterations) for run in self.runs],
            dtype=models.dtype,
            device=models.device,
        )
        self.costs.descend(models, steps, self._weight_decay)

    def aggregate(self, messages: Tensor, share: bool = False) -> tuple[Tensor, Tensor | None]:
        """Every agent's next model, and on request whom it listened to. Uses up ``messages``."""
        flat, head = messages.flatten(2), self.costs.head(messages)
        spare, self._spare = self._spare, messages
        models = torch.empty_like(flat) if spare is None else spare.flatten(2)
        shares = torch.empty(flat.shape[:2], dtype=torch.float64, device=flat.device)

        with self._workers.alone():
            for runs, exchange in self._exchanges:
                part = None if head is None else head[runs]
                _, given = exchange.step(flat[runs], part, share, out=models[runs])
                if given is not None:
                    shares[runs] = given
        return models.view_as(messages), shares if share else None

    def measure(self, state: State) -> dict[str, Tensor]:
        """``[runs]`` values of each metric, runs in the order of :attr:`runs`."""
        with self._workers.alone():
            return self.meter.measure(state.models, state.share)

    def train(
        self,
        progress: Callable[[int, dict[str, Tensor]], Any] | None = None,
        observe: Observer | None = None,
        start: Checkpoint | None = None,
        keep: Callable[[Checkpoint], Any] | None = None,
    ) -> list[History]:
        """Run all iterations.

        Args:
            progress: called after every iteration with its number and the latest metrics.
            observe: called after every exchange with the iteration's number, what the agents sent
                and what they made of it, both ``[runs, agents, …]`` in the order of :attr:`runs`,
                and both valid until it returns.
            start: where an earlier training of the same runs stood; the results are the same, to
                the last bit, as if it had never stopped.
            keep: called after every iteration with where training stands. That costs nothing:
                what it is given is valid until it returns, and is worth writing now and then.

        Returns:
            One history a run, in the order the runs were given.
        """
        subject = subject_of(self.problem, self.runs)
        state = self.start()
        taken: list[Taken]
        if start is None:
            taken = [(0, self.measure(state))]
        else:
            start.check(subject, state.models)
            # Into fresh memory: how a file's content is aligned could decide last bits.
            state = State(start.iteration, state.models.copy_(start.models))
            taken = list(start.taken)
        while state.iteration < self.problem.iterations:
            state = self.step(state, observe)
            if self._is_measured(state.iteration):
                taken.append((state.iteration, self.measure(state)))
            if keep is not None:
                keep(Checkpoint(state.iteration, state.models, taken, subject))
            if progress is not None:
                progress(state.iteration, taken[-1][1])
        return self._histories(state, taken)

    def _is_measured(self, iteration: int) -> bool:
        return iteration % self.problem.every == 0 or iteration == self.problem.iterations

    def _histories(self, state: State, taken: Sequence[Taken]) -> list[History]:
        iterations = np.array([iteration for iteration, _ in taken], dtype=np.int64)
        vectors = self.costs.vectors(state.models).cpu()
        columns = {
            name: torch.stack([values[name] for _, values in taken], dim=1).cpu().numpy()
            for name in self.problem.metrics
        }
        histories: list[History | None] = [None] * len(self.runs)
        for place, original in enumerate(self._order):
            metrics = {name: column[place] for name, column in columns.items()}
            histories[original] = History(iterations, metrics, vectors[place])
        return [history for history in histories if history is not None]


def _together(run: Run) -> Any:
    """What runs must agree in to be aggregated by one call."""
    return "dense" if is_dense(run.aggregator, run.network) else run.aggregator


def _sorter(runs: Sequence[Run]) -> Callable[[int], tuple[int, ...]]:
    """Sorts runs by how they are aggregated, then by what their rule reads, rule and network."""

    def traits(run: Run) -> tuple[Any, ...]:
        rule = run.aggregator
        reads = (getattr(rule, "reads", ""), rule.wiring())
        return _together(run), reads, rule, run.network

    seen: list[dict[Any, int]] = [{}, {}, {}, {}]
    for run in runs:
        for known, trait in zip(seen, traits(run), strict=True):
            known.setdefault(trait, len(known))

    def key(place: int) -> tuple[int, ...]:
        return tuple(known[trait] for known, trait in zip(seen, traits(runs[place]), strict=True))

    return key


def softmax_costs(problem: Problem, runs: Sequence[Run], workers: Workers) -> LocalCosts:
    """The local costs of softmax regression, computed in the way that suits their number."""
    if problem.dataset is None or problem.partition is None:
        raise BezoarError(
            "problem: without local costs of its own it needs a dataset and partition"
        )
    kind = ManyAgents if problem.partition.sizes.max() < FEW_SAMPLES else FewAgents
    device, dtype = torch.device(problem.device), DTYPES[problem.dtype]
    return kind(problem.dataset, problem.partition, runs, dtype, device, workers)


def check_runs(problem: Problem, runs: Sequence[Run]) -> None:
    """Refuse runs that cannot be trained; without a partition, for any reason but that.

    Raises:
        BezoarError: with the field, what was found and what is allowed.
    """
    if not runs:
        raise BezoarError("runs: at least one is needed")
    for run in runs:
        if problem.partition and run.network.agents != problem.partition.agents:
            raise BezoarError(
                f"partition: made for {problem.partition.agents} agents, but the "
                f"{run.network.name} network has {run.network.agents}"
            )
        run.aggregator.check(run.network)
        if problem.dataset:
            run.attack.check(problem.dataset.classes)
        if not run.weight_decay >= 0:
            raise BezoarError(f"weight_decay: expected 0 or more, found {run.weight_decay}")
    for field, found, least in (
        ("iterations", problem.iterations, 0),
        ("every", problem.every, 1),
    ):
        if found < least:
            raise BezoarError(f"{field}: expected at least {least}, found {found}")
    for name in problem.metrics:
        choose("metrics", name, METRICS)
    choose("dtype", problem.dtype, DTYPES)
    _check_device(problem.device)


def _check_device(name: str) -> None:
    """Refuse a device that torch does not know or this machine does not have."""
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise BezoarError(
            f"device: {name!r} cannot be used here ({reason}); allowed: cpu, and cuda, mps and the "
            "like where torch finds them"
        ) from None
