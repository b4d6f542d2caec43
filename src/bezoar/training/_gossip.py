"""Asynchronous gossip: a few agents at a time, with what their neighbours sent last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne
from bezoar._seeds import Purpose, generator
from bezoar.exchange import FalseMessages
from bezoar.training._algorithms import Algorithm, Stepped
from bezoar.training._messages import count_sends
from bezoar.training._run import Run, State

if TYPE_CHECKING:
    from bezoar.training._engine import Engine


@dataclass(frozen=True)
class Gossip(Algorithm):
    """Asynchronous gossip: some agents wake, step, send, and aggregate; all others sleep.

    An agent that wakes makes its local update, sends the result to its neighbours, and applies its
    rule to it and to what each neighbour sent last; before anybody has sent, that is where all
    start. The others keep their models and momentum. Who wakes is drawn by the seed and the
    iteration. If all wake, it is Algorithm 1. What is told of who listened to whom is what it would
    be if all woke. Everyone's gradient is computed, so an iteration takes as long as one of
    Algorithm 1.

    Args:
        awake: how many agents wake in an iteration.
    """

    awake: AtLeastOne = 1

    name: ClassVar[str] = "gossip"
    remembers: ClassVar[tuple[str, ...]] = ("last_messages", "last_false_messages")

    def check(self, run: Run, local_steps: int, rounds: int) -> None:
        super().check(run, local_steps, rounds)
        if run.attack.lies and not run.attack.always:
            raise BezoarError(
                f"attack {run.attack.name}: in gossip false messages are kept until the next ones, "
                "so poisoned agents must send them throughout; allowed: neither from_iteration nor "
                "until"
            )
        if self.awake > run.network.agents:
            raise BezoarError(
                f"awake: expected 1 … {run.network.agents} of the agents of the "
                f"{run.network.name} network, found {self.awake}"
            )
        if rounds > 1:
            raise BezoarError(
                f"rounds: agents that wake in gossip send once, found {rounds} rounds; allowed: 1"
            )
        if run.network.changes:
            raise BezoarError(
                f"network: in gossip everyone keeps what its neighbours sent last, so neighbours "
                f"must stay the same; found {run.network.name}, which changes"
            )

    def start(self, engine: Engine, models: Tensor) -> Mapping[str, Tensor]:
        most = max(count_sends(run.attack, run.network) for run in engine.runs)
        first = models.flatten(2)[:, :1]  # all start at the same model
        return {
            "last_messages": models.clone(),
            "last_false_messages": first.expand(-1, most, -1).clone(),
        }

    def step(self, engine: Engine, state: State, k: int) -> Stepped:
        awake = self._awake(engine, k)
        own = ("models", *engine.local_updates.names, *engine.task.buffers)
        before = {name: state.tensors[name].clone() for name in own}
        messages = engine.local_steps(state, k)
        _keep(messages, state.tensors["last_messages"], awake)
        sent = engine.send(state, messages, before["models"], before["models"], k)
        lies = state.tensors["last_false_messages"]
        if sent.false is not None:
            sent = replace(sent, false=_with_last(sent.false, lies, awake))
        engine.exchange(state, sent, k, state.models)
        for name in own:
            _keep(state.tensors[name], before[name], awake)
        last = state.tensors["last_messages"].copy_(messages)
        return messages, {"models": state.models, "last_messages": last}

    def _awake(self, engine: Engine, k: int) -> Tensor:
        """``[runs, agents]`` who wakes in an iteration."""
        agents = engine.task.agents
        awake = torch.zeros(len(engine.runs), agents, dtype=torch.bool)
        for row, run in zip(awake, engine.runs, strict=True):
            rng = generator(run.seed, Purpose.AWAKE, iteration=k)
            row[torch.from_numpy(rng.permutation(agents)[: self.awake])] = True
        return awake.to(engine.task.device)


def _keep(values: Tensor, before: Tensor, awake: Tensor) -> None:
    """Put back what agents that sleep had before; ``[runs, agents, …]``."""
    mask = awake.view(*awake.shape, *[1] * (values.ndim - 2))
    torch.where(mask, values, before, out=values)


def _with_last(false: FalseMessages, last: Tensor, awake: Tensor) -> FalseMessages:
    """False messages of those who are awake, and the last ones of those who sleep.

    ``last [runs, most, D]`` has the messages of each run in their order; it is updated in place.
    """
    _, first = np.unique(false.rows, return_index=True)
    runs, senders = false.runs[first], false.senders[first]
    _, begin, which = np.unique(runs, return_index=True, return_inverse=True)
    places = np.arange(len(runs)) - begin[which]  # those of a run follow each other
    where = tuple(torch.from_numpy(part).to(last.device) for part in (runs, places))
    fresh = awake[where[0], torch.from_numpy(senders).to(last.device)]
    last[where] = torch.where(fresh.unsqueeze(-1), false.values, last[where])
    return replace(false, values=last[where])
