"""The exchange of one agent: its rule, applied to what it received."""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from bezoar._arrays import Floats
from bezoar._errors import BezoarError
from bezoar.agents._neighbours import Neighbours
from bezoar.agents._offers import Offer
from bezoar.aggregators import Aggregator
from bezoar.exchange import Links, Sent, aggregate_at
from bezoar.networks import Network
from bezoar.training import Task


class OverNetwork:
    """The exchanges of an agent whose neighbours are elsewhere; see ``training.Exchanges``.

    Args:
        task: what the agent learns, with this agent as its only member, in one run.
        neighbours: its connections.
        iterations: how many there are; nobody can make the agent skip the last one.
    """

    def __init__(self, task: Task, neighbours: Neighbours, iterations: int) -> None:
        [run], [agent] = task.runs, task.members
        self._rule, self._agent, self._neighbours = run.aggregator, agent, neighbours
        self._layer, self._device = task.output_layer, task.device
        [self._network] = run.network.turns
        self._row = self._network.mixing(self._rule.wiring()[0])[[agent]].toarray()[0]
        self.remember = bool(self._rule.remembers())
        self._number, self._reached, self._iterations = 0, 0, iterations

    def at(self, iteration: int) -> "OverNetwork":
        """The exchange of one iteration."""
        self._number = iteration
        return self

    def memory(self, models: Tensor) -> list[Tensor]:
        """Messages may be anywhere."""
        return []

    def reached(self, iteration: int) -> int:
        """How many iterations are done after the last exchange; see :meth:`Neighbours.exchange`."""
        return max(iteration, min(self._reached, self._iterations - 1))

    @property
    def links(self) -> Links:
        """Nobody is asked who listened to whom."""
        raise BezoarError("listening: agents on several machines do not tell whom they listen to")

    def __call__(
        self, sent: Sent, tell: bool = False, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Send, receive, and apply the rule.

        Args:
            sent: ``[1, 1, D]`` what the agent sends.
            tell: whether to tell who listened to whom, which nobody asks.
            out: ``[1, 1, D]`` where to write the next model.
        """
        own = sent.messages[0, 0]
        heard, self._reached = self._neighbours.exchange(self._number, self._offer(sent))
        received = {self._network.names.index(name): each for name, each in heard.items()}
        others = sorted(received)
        vectors = (torch.from_numpy(received[other]).to(self._device) for other in others)
        if out is None:
            out = torch.empty_like(sent.messages)
        out[0, 0] = self._apply(torch.stack([own, *vectors]), others, sent)
        return out, None

    def _offer(self, sent: Sent) -> Offer:
        """What every neighbour receives, as arrays that nobody writes to any more."""
        message = sent.messages[0, 0].cpu().numpy().copy()
        if sent.false is None:
            return Offer(message)
        values = sent.false.values.cpu().numpy()
        links = zip(sent.false.receivers.tolist(), sent.false.rows.tolist(), strict=True)
        return Offer(message, {self._network.names[to]: values[row].copy() for to, row in links})

    def _apply(self, inputs: Tensor, heard: Sequence[int], sent: Sent) -> Tensor:
        """The rule's output; the own message where the rule cannot do with so few inputs."""
        estimate = estimate_of(self._rule, self._network, self._agent, heard)
        if len(inputs) < self._rule.inputs_needed(estimate or 0):
            return inputs[0]
        mixing = mixing_of(self._row, self._agent, heard)
        senders, losses = (self._agent, *heard), None
        if samples := self._rule.samples_judged():
            assert sent.judge is not None
            losses = sent.judge(0, self._agent, inputs, samples)
        known = {name: values[0, 0] for name, values in sent.remembered.items()}
        when = (sent.iteration, sent.progress)
        return aggregate_at(
            *(self._rule, inputs, mixing, estimate, senders, known, *when, self._layer, losses)
        )


def mixing_of(row: Floats, agent: int, heard: Sequence[int]) -> Floats:
    """``[m]`` of an agent's row of the mixing matrix the own weight, then of those heard.

    The weights of neighbours that are missing go to the own model.
    """
    weights: Floats = row[[agent, *heard]]
    missing = np.setdiff1d(np.flatnonzero(row), [agent, *heard])
    weights[0] += row[missing].sum()
    return weights


def estimate_of(
    rule: Aggregator, network: Network, agent: int, heard: Collection[int]
) -> int | None:
    """How many of its inputs an agent takes for poisoned when some neighbours are missing.

    The exact number counts those that are heard. Any other is an upper bound, which missing
    neighbours do not lower; only where the rule cannot bear so many among fewer inputs, it is as
    many as the rule can bear. Rules without an estimate have none.
    """
    if not rule.uses_estimate():
        return None
    if rule.wiring()[1] == "exact":
        expected = sum(network.poisoned_mask[other] for other in (agent, *heard))
    else:
        expected = int(rule.estimates(network)[agent])
    return int(min(expected, rule.bearable(np.array(len(heard) + 1), expected)))
