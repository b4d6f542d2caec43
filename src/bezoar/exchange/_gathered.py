"""Inputs of neighbourhoods, gathered some columns at a time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from bezoar._arrays import Ints
from bezoar._questions import some
from bezoar._workspace import workspace
from bezoar.aggregators import Aggregator
from bezoar.exchange._links import Tell
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._sent import Sent
from bezoar.exchange._tuning import Map, Tuning


@dataclass(frozen=True)
class Piece:
    """A piece of work: some agents in some runs, with as many inputs and the same estimate.

    A place is one agent in one run.

    Attributes:
        runs: the numbers of the runs.
        here: the agents' neighbourhoods.
        agents: the number of agents in the network.
    """

    runs: Sequence[int]
    here: Neighbourhoods
    agents: int

    @cached_property
    def rows(self) -> Tensor:
        """``[places, m]`` the rows of the messages ``[runs · W, D]`` that are behind the slots."""
        runs = torch.tensor(self.runs, device=self.here.index.device)
        return (self.here.index + self.agents * runs[:, None, None]).flatten(0, 1)

    def inputs(self, sent: Sent, remembered: Iterable[str] = ()) -> "GatheredInputs":
        """The inputs, and what is remembered by these names."""
        false = None
        if sent.false is not None:
            links = sent.false.behind(self.runs, self.here.on_host).reshape(len(self.rows), -1)
            if (links >= 0).any():
                false = np.where(links >= 0, sent.false.rows[links], -1)
        known = tuple(sent.remembered[name].flatten(0, 1) for name in remembered)
        return GatheredInputs(sent, self.rows, known, false)


@dataclass(frozen=True)
class GatheredInputs:
    """The inputs at some places. What a rule remembers follows them in slots of its own.

    Attributes:
        sent: what is sent.
        rows: ``[places, m]`` the rows of the messages ``[runs · W, D]`` that are the inputs.
        remembered: ``[runs · W, D]`` what follows them.
        false: ``[places, m]`` which false message comes instead, −1 where none does; on the host.
    """

    sent: Sent
    rows: Tensor
    remembered: Sequence[Tensor] = ()
    false: Ints | None = None

    @classmethod
    def held(cls, values: Tensor) -> "GatheredInputs":
        """Inputs ``[places, m, D]`` that lie beside each other."""
        places, slots, _ = values.shape
        numbers = torch.arange(places * slots, device=values.device)
        return cls(Sent(values), numbers.view(places, slots))

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(places, m, D)``, what is remembered included."""
        places, inputs = self.rows.shape
        return places, inputs + len(self.remembered), self.sent.messages.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the messages."""
        return self.sent.messages.dtype

    def some(self, places: Tensor) -> "GatheredInputs":
        """The inputs at the places ``[places]`` that are true."""
        false = None if self.false is None else self.false[places.cpu().numpy()]
        return replace(self, rows=self.rows[places], false=false)

    def slots_first(self) -> "GatheredInputs":
        """The same with slots and places exchanged, where nothing is remembered."""
        return replace(self, rows=self.rows.T, false=None if self.false is None else self.false.T)

    def columns(self, columns: slice, places: slice = slice(None)) -> Tensor:
        """``[places, m, width]`` some columns; valid until the thread gathers again."""
        table = self.sent.messages.flatten(0, 1)[:, columns]
        rows = inputs = self.rows[places]
        own = inputs[:, :1]
        if self.remembered:
            rows = torch.cat([inputs, *[own] * len(self.remembered)], dim=1)
        shape = (rows.numel(), table.shape[-1])
        values = workspace("inputs", shape, table.dtype, table.device)
        torch.index_select(table, 0, rows.flatten(), out=values)
        values = values.view(*rows.shape, -1)
        for slot, known in enumerate(self.remembered, start=inputs.shape[1]):
            values[:, slot] = known[:, columns][own[:, 0]]
        false = self._false(places)
        if false is not None:
            place, slots, which = false
            assert self.sent.false is not None
            values[place, slots] = self.sent.false.values[:, columns][which]
        return values

    def addresses(self, column: int = 0) -> Ints:
        """``[places, m]`` where the inputs lie in the processor's memory, from some column on."""
        found = addresses(self.sent.messages.flatten(0, 1)[:, column:], self.rows.numpy())
        if self.false is not None:
            assert self.sent.false is not None
            lies = addresses(self.sent.false.values[:, column:], self.false)
            found = np.where(self.false >= 0, lies, found)
        return found

    def _false(self, places: slice = slice(None)) -> Sequence[Tensor] | None:
        """``[links]`` the places, slots and rows of false messages, if there are any."""
        if self.false is None:
            return None
        rows = self.false[places]
        found = np.nonzero(rows >= 0)
        return [torch.from_numpy(part).to(self.rows.device) for part in (*found, rows[found])]

    def combined(self, weights: Tensor) -> Tensor:
        """``[places, D]`` the sums of the first ``m`` slots, weighted by ``[places, m]``.

        Zero times infinity is zero. An agent that gives weight to a message that is not finite gets
        NaN.
        """
        weights = weights.to(self.sent.messages.dtype)
        table, inputs = self.sent.messages.flatten(0, 1), self.rows.shape[1]
        of_inputs = weights[:, :inputs].contiguous()
        false = self._false()
        if false is not None:
            place, slots, which = false
            assert self.sent.false is not None
            lied = weights[place, slots].unsqueeze(-1) * self.sent.false.values[which]
            of_inputs = of_inputs.clone()
            of_inputs[place, slots] = 0
        sums: Tensor = embedding_bag(self.rows, table, per_sample_weights=of_inputs, mode="sum")
        if false is not None:
            sums.index_add_(0, place, lied)
        for slot, known in zip(range(inputs, weights.shape[1]), self.remembered, strict=False):
            sums += known[self.rows[:, 0]] * weights[:, slot : slot + 1]
        if some(~torch.isfinite(sums.sum())):
            values = self.columns(slice(None))[:, : weights.shape[1]]
            return combine_carefully(weights.unsqueeze(-2), values).squeeze(-2)
        return sums


@dataclass(eq=False)
class GatheredExchange(ABC):
    """A rule on one network, in some runs, applied neighbourhood by neighbourhood.

    Attributes:
        runs: the numbers of the runs.
        rule: the rule.
        agents: the number of agents in the network.
        parts: their inputs, those with as many and the same estimate together.
        tuning: how the work is cut up.
    """

    runs: Sequence[int]
    rule: Aggregator
    agents: int
    parts: Sequence[Neighbourhoods]
    tuning: Tuning
    _kept: dict[object, list[Piece]] = field(default_factory=dict, init=False)

    def __call__(self, sent: Sent, models: Tensor, tell: Tell | None, map: Map) -> None:
        """Write the next models and tell the weights, if somebody asks."""
        pieces = self._cut(sent)
        work = self._worker(pieces, sent, models, tell is not None, map)
        for piece, weights in zip(pieces, map(work, pieces), strict=True):
            if tell is not None and weights is not None:
                tell(piece.runs, piece.here, weights)

    def _cut(self, sent: Sent) -> list[Piece]:
        """The work, in pieces, which are the same for messages of the same kind."""
        kind = (sent.messages.shape, sent.messages.dtype, sent.false is None)
        pieces = self._kept.get(kind)
        if pieces is None:
            pieces = list(self._pieces(sent))
            self._kept = {kind: pieces}
        return pieces

    def _cut_up(self, part: Neighbourhoods, most: int) -> Iterator[Piece]:
        """The runs and agents of a part in pieces of at most so many places."""
        for here in part.some(max(1, most)):
            together = max(1, most // here.agents)
            for start in range(0, len(self.runs), together):
                yield Piece(self.runs[start : start + together], here, self.agents)

    @abstractmethod
    def _pieces(self, sent: Sent) -> Iterator[Piece]:
        """The work, in pieces."""

    @abstractmethod
    def _worker(
        self, pieces: Sequence[Any], sent: Sent, models: Tensor, tell: bool, map: Map
    ) -> Callable[[Any], Tensor | None]:
        """What does a piece: writes the models, and returns ``[runs, n, m]`` weights if asked.

        Args:
            pieces: all pieces, for what is prepared for several of them.
            sent: what is sent.
            models: where to write.
            tell: whether weights are asked for.
            map: what goes through the parts of the preparation.
        """


def addresses(table: Tensor, rows: Ints) -> Ints:
    """``[...]`` where the rows ``[...]`` of a table ``[n, D]`` lie in the processor's memory."""
    return table.data_ptr() + rows * (table.stride(0) * table.element_size())


def combine_carefully(weights: Tensor, values: Tensor) -> Tensor:
    """``weights [..., r, n] @ values [..., n, D]`` where zero times infinity is zero.

    An agent that gives weight to a message that is not finite gets NaN.
    """
    bad = ~torch.isfinite(values).all(-1)
    models = weights @ values.masked_fill(bad.unsqueeze(-1), 0)
    reached = (weights * bad.unsqueeze(-2)).sum(-1) != 0
    return models.masked_fill_(reached.unsqueeze(-1), torch.nan)
