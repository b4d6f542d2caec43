"""Algorithm 1 and its relatives for many runs at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from bezoar._checks import instance, whole
from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar.exchange import Sent, Tuning, UpdateSums, layer_of, listening_matrix
from bezoar.training._algorithms import AdaptThenCombine, Algorithm
from bezoar.training._checkpoint import Checkpoint, Measured, subject_of
from bezoar.training._exchanges import Exchanges, InMemory
from bezoar.training._local_updates import LocalUpdates
from bezoar.training._messages import false_messages
from bezoar.training._metrics import METRICS, OF_AGENTS, Meter
from bezoar.training._ranks import Everyone
from bezoar.training._run import State
from bezoar.training._task import Task

#: Is called after an iteration with its number, what was sent, and the next models.
Observer = Callable[[int, Tensor, Tensor], Any]


@dataclass(frozen=True)
class History:
    """What was measured of one run.

    Attributes:
        iterations: ``[n]`` after how many iterations.
        metrics: ``[n]`` values for each metric.
        agents: ``[n, agents]`` the accuracy and test loss of every agent's own model, if asked for.
        listening: ``[agents, agents]`` the weight that each agent, a row, gave to each agent, a
            column, after the iterations asked for.
        models: ``[agents, D]`` the final models, the output layer's weights first. ``[0, D]``
            where several ranks have trained them: no rank holds all.
        buffers: ``[agents, …]`` what belongs to the final models and is not exchanged, by name.
        details: how it was computed, as far as that is worth telling.
        diverged_elsewhere: whether a model that is not here is no longer finite.
    """

    iterations: NDArray[np.int64]
    metrics: dict[str, NDArray[np.float64]]
    models: Tensor
    buffers: Mapping[str, Tensor] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    agents: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    listening: Mapping[int, csr_array] = field(default_factory=dict)
    diverged_elsewhere: bool = False

    def __getitem__(self, metric: str) -> NDArray[np.float64]:
        return choose("metric", metric, self.metrics)

    @property
    def diverged(self) -> bool:
        """Whether some agent's model is no longer finite."""
        return self.diverged_elsewhere or not bool(torch.isfinite(self.models).all())

    def to_pandas(self) -> Any:
        """The metrics as a pandas data frame: a row for each iteration, a column for each metric.

        Raises:
            BezoarError: where pandas is not installed; bezoar itself does not need it.
        """
        try:
            import pandas as pd
        except ImportError:
            raise BezoarError(
                "pandas: it is not installed here; 'pip install pandas' installs it"
            ) from None
        return pd.DataFrame(self.metrics, index=pd.Index(self.iterations, name="iteration"))


class Engine:
    """Steps the runs of a task together.

    Everything it is given or returns has the runs in the task's order.

    Args:
        task: what the agents learn, in which runs.
        iterations: the number of iterations, ``K``.
        every: how many iterations lie between two measurements; there is one at the start and one
            at the end, too.
        metrics: which metrics to take, of :data:`~bezoar.training.METRICS`.
        local_steps: local updates before every exchange, all with the iteration's step size.
        rounds: how often agents exchange and aggregate in an iteration; what one round gives is
            sent in the next.
        algorithm: what an iteration makes of the models; by default it is Algorithm 1.
        agent_metrics: whether to take accuracy and test loss of every single agent, too.
        listening: the iterations of which the weights that agents gave to each other are kept.
        tuning: how exchanges are computed.
        exchanges: how messages become models in each iteration; by default in memory, all agents
            at once.
        everyone: how numbers of agents that are trained elsewhere are gathered; by default all
            agents are trained here.
    """

    def __init__(
        self,
        task: Task,
        *,
        iterations: int,
        every: int = 1,
        metrics: Sequence[str] = (),
        local_steps: int = 1,
        rounds: int = 1,
        algorithm: Algorithm | None = None,
        agent_metrics: bool = False,
        listening: Sequence[int] = (),
        tuning: Tuning | None = None,
        exchanges: Exchanges | None = None,
        everyone: Everyone | None = None,
    ) -> None:
        whole("iterations", iterations, 0)
        counts = {"every": every, "local_steps": local_steps, "rounds": rounds}
        for field_name, found in counts.items():
            whole(field_name, found, 1)
        for name in metrics:
            choose("metrics", name, METRICS)
        self.task, self.runs = task, task.runs
        self.iterations, self.every = iterations, every
        self.steps, self.rounds = local_steps, rounds
        self.algorithm = algorithm or AdaptThenCombine()
        instance("algorithm", self.algorithm, Algorithm, "an instance of Algorithm")
        for run in self.runs:
            self.algorithm.check(run, local_steps, rounds)
        self._everyone = everyone or Everyone(task.members)
        self.meter = Meter(task, metrics, agent_metrics, self._everyone)
        self.local_updates = LocalUpdates(task, iterations)
        self.listening = check_listening(listening, iterations)
        self._exchanges = exchanges or InMemory(task, tuning or Tuning())
        self._free: list[Tensor] = []  # memory like the models, to be used again
        sums = enumerate(run.aggregator.sums_updates() for run in self.runs)
        self._summing = [number for number, keeps in sums if keeps]
        self._summed: Tensor | None = None  # memory like the sums of updates, if some are kept
        self._shares: Tensor | None = None  # who was listened to in the last exchange, if measured

    def start(self) -> State:
        """The common starting point."""
        tensors = self.task.start()
        tensors |= self.local_updates.start(tensors["models"])
        tensors |= self.algorithm.start(self, tensors["models"])
        self._free = self._exchanges.memory(tensors["models"])
        if self.listening:
            length = max(self._exchanges.at(k).links.length for k in self.listening)
            shape = (len(self.runs), len(self.listening), length)
            zeros = torch.zeros(shape, dtype=torch.float64, device=self.task.device)
            tensors["listening"] = zeros
        tensors |= self._update_sums(tensors["models"])
        return State(0, {name: tensor.contiguous() for name, tensor in tensors.items()})

    def step(self, state: State, observe: Observer | None = None) -> State:
        """One iteration. The memory of ``state`` is used again."""
        k = state.iteration + 1
        with self.task.workers.alone():
            messages, changed = self.algorithm.step(self, state, k)
        if observe is not None:
            observe(k, messages, changed["models"])
        self._free.append(messages)
        return State(self._exchanges.reached(k), {**state.tensors, **changed})

    def local_steps(self, state: State, k: int) -> Tensor:
        """Every agent's model after its local updates, each along a gradient on its own data."""
        own = state
        first = (k - 1) * self.steps + 1
        for update in range(first, first + self.steps):
            gradients = self.task.gradients(own, update, self.memory(state))
            updated = self.local_updates(own, gradients, k)
            if own is not state:
                self._free.append(own.models)
            own = State(state.iteration, {**state.tensors, "models": updated})
        return own.models

    def aggregate(self, state: State, messages: Tensor, before: Tensor, k: int) -> Tensor:
        """Every agent's output: its rule, applied to what it receives, once in every round.

        Args:
            state: where training stands.
            messages: ``[runs, agents, …]`` what the agents send, if they follow the protocol.
            before: the same before the local update. Its memory is used again.
            k: the iteration.
        """
        inputs, output = messages, before
        for left in reversed(range(self.rounds)):
            sent = self.send(state, inputs, before, output, k)
            again = not left and not self._exchanges.remember
            output = self.exchange(state, sent, k, before if again else self.memory(state))
            if inputs is not messages:
                self._free.append(inputs)
            inputs = output
        if output is not before:
            self._free.append(before)
        return output

    def send(self, state: State, messages: Tensor, before: Tensor, output: Tensor, k: int) -> Sent:
        """What is sent: every agent's message, but for what poisoned agents make of theirs.

        ``before`` is what they held before the local update, and ``output`` what their rules gave
        last.
        """
        held, earlier = messages.flatten(2), before.flatten(2)
        here, everyone = self.task.members, self.runs[0].network.agents
        members = here if len(here) < everyone else None
        false = false_messages(self.runs, held, earlier, k, members)
        remembered = {"previous_output": output.flatten(2), "model_before_step": earlier}

        def judge(run: int, agent: int, models: Tensor, samples: int) -> Tensor:
            return self.task.losses(run, here.index(agent), models, samples, k)

        progress, sums = k / self.iterations, None
        if (summed := state.tensors.get("update_sums")) is not None:
            if self._summed is None:
                self._summed = torch.zeros_like(summed)
            sums = UpdateSums(self._summing, summed, self._summed)
        return Sent(held, false, remembered, k, progress, judge, sums)

    def exchange(self, state: State, sent: Sent, k: int, out: Tensor) -> Tensor:
        """Every agent's rule, applied to what it received; written into ``out``.

        ``out`` must not share memory with what is sent, nor with what a rule remembers.
        """
        exchange, kept = self._exchanges.at(k), k in self.listening
        tell = kept or ("shares" in self.meter.needs and self._is_measured(k))
        _, weights = exchange(sent, tell, out.view(*out.shape[:2], -1))
        self._shares = None if weights is None else exchange.links.poison_shares(weights)
        if kept and weights is not None:
            place = self.listening.index(k)
            state.tensors["listening"][:, place, : weights.shape[1]] = weights
        if sent.sums is not None:
            sent.sums.before.copy_(sent.sums.after)
        return out

    def measure(self, state: State) -> dict[str, Tensor]:
        """``[runs]`` values of each metric, ``[runs, agents]`` of those of single agents."""
        with self.task.workers.alone():
            return self.meter.measure(state, self._shares)

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
            observe: called after every iteration with its number, what agents send if they follow
                the protocol, and the next models, both ``[runs, agents, …]`` and both valid until
                it returns.
            start: where an earlier training of the same runs stood; the results are the same, to
                the last bit, as if it had never stopped.
            keep: called after every iteration with a checkpoint, which is valid until it returns.
                To make one costs nothing; to write one now and then is enough.

        Returns:
            One history a run.
        """
        subject = subject_of(self) if start or keep else ()
        state, measured = self._begin(start, subject)
        while state.iteration < self.iterations:
            state = self.step(state, observe)
            if self._is_measured(state.iteration):
                measured.append((state.iteration, self.measure(state)))
            if keep is not None:
                keep(Checkpoint(state, measured, subject))
            if progress is not None:
                progress(state.iteration, measured[-1][1])
        return self._histories(state, measured)

    def fits(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint was made in a training like this."""
        return checkpoint.subject == subject_of(self)

    def _begin(
        self, start: Checkpoint | None, subject: tuple[str, ...]
    ) -> tuple[State, list[Measured]]:
        self._shares = None
        state = self.start()
        if start is None:
            return state, [(0, self.measure(state))]
        start.check(subject, state)
        for name, tensor in state.tensors.items():
            # Into fresh memory: how a file's content is aligned could decide last bits.
            tensor.copy_(start.state.tensors[name])
        measured = [
            (iteration, {name: value.to(self.task.device) for name, value in values.items()})
            for iteration, values in start.measured
        ]
        return State(start.state.iteration, state.tensors), measured

    def _update_sums(self, models: Tensor) -> dict[str, Tensor]:
        """What rules that go by sums of updates keep, before the first iteration."""
        if not self._summing:
            return {}
        rules = [self.runs[run].aggregator for run in self._summing]
        layers = [layer_of(rule, self.task.output_layer) for rule in rules]
        width = max(layer.classes * layer.features for layer in layers)
        links = self._exchanges.at(1).links.length
        return {"update_sums": models.new_zeros(len(rules), links, width)}

    def memory(self, state: State) -> Tensor:
        """Memory like the models that nobody needs any more."""
        return self._free.pop() if self._free else torch.empty_like(state.models)

    def _is_measured(self, iteration: int) -> bool:
        return iteration % self.every == 0 or iteration == self.iterations

    def _histories(self, state: State, measured: Sequence[Measured]) -> list[History]:
        iterations = np.array([iteration for iteration, _ in measured], dtype=np.int64)
        vectors, lost = self._final_models(state.models)
        columns = {
            name: torch.stack([values[name] for _, values in measured], dim=1).cpu().numpy()
            for name in measured[0][1]
        }
        buffers = {name: state.tensors[name].cpu() for name in self.task.buffers}
        return [
            History(
                iterations,
                {metric.name: columns[metric.name][run] for metric in self.meter.metrics},
                vectors[run],
                {name: values[run] for name, values in buffers.items()},
                self.task.details,
                {name: columns[OF_AGENTS + name][run] for name in self.meter.of_agents},
                {
                    k: listening_matrix(each.network.at(k), state.tensors["listening"][run, place])
                    for place, k in enumerate(self.listening)
                },
                lost,
            )
            for run, each in enumerate(self.runs)
        ]

    def _final_models(self, models: Tensor) -> tuple[Tensor, bool]:
        """``[runs, agents, D]`` models as users get them, and whether others have diverged."""
        if self.task.agents == len(self._everyone.agents):
            return self.task.vectors(models).cpu(), False
        finite = torch.isfinite(models.sum(dtype=torch.float64)).to(torch.float64)
        lost = self._everyone.total((1 - finite).unsqueeze(0))
        return models[:, :0].flatten(2).cpu(), bool(lost > 0)


def check_listening(found: Sequence[int], iterations: int) -> tuple[int, ...]:
    """The iterations of which weights are kept, see :class:`Engine`, in order and each once."""
    if wrong := [k for k in found if k not in range(1, iterations + 1)]:
        raise BezoarError(f"listening: expected iterations 1 … {iterations}, found {wrong[0]}")
    return tuple(sorted(set(found)))
