"""Sparse networks: every neighbourhood gathered, weighed and combined on its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar._errors import BezoarError
from bezoar._questions import some
from bezoar._workspace import workspace
from bezoar.aggregators import (
    Aggregator,
    Neighbourhood,
    OutputLayer,
    OutputLayers,
    WeightedAggregator,
)
from bezoar.exchange._inner_products import inner_products
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._output_layers import GatheredOutputLayers
from bezoar.exchange._sent import FalseMessages, Ints, Sent
from bezoar.exchange._tuning import Map, Tuning


@dataclass(frozen=True)
class Gathered:
    """Neighbourhoods whose inputs are gathered, in some runs.

    Attributes:
        runs: ``[r]`` the numbers of the runs.
        here: the neighbourhoods, all of one size.
        agents: the number of agents in the network.
    """

    runs: Tensor
    here: Neighbourhoods
    agents: int

    def rows(self) -> Tensor:
        """``[r, n, m]`` which rows of the messages ``[runs · W, D]`` are behind the slots."""
        return self.here.index + self.agents * self.runs[:, None, None]

    def false_slots(self, false: FalseMessages | None) -> tuple[Ints, Ints] | None:
        """Which slots ``[links]`` of ``[r · n · m]`` hold which false messages, if any."""
        if false is None:
            return None
        runs, agents, index = self.on_host
        links = np.flatnonzero(np.isin(false.runs, runs) & np.isin(false.receivers, agents))
        if not len(links):
            return None
        run = (runs == false.runs[links, None]).argmax(-1)
        agent = (agents == false.receivers[links, None]).argmax(-1)
        slot = (index[agent] == false.senders[links, None]).argmax(-1)
        place = (run * len(agents) + agent) * self.here.slots + slot
        return place, false.rows[links]

    @cached_property
    def on_host(self) -> tuple[Ints, Ints, Ints]:
        """The runs, the agents, and the agents behind their slots; fetched once."""
        [index] = self.here.index
        return self.runs.cpu().numpy(), self.here.agents.cpu().numpy(), index.cpu().numpy()


class SparseExchange:
    """A rule by weights on one network, in some runs.

    Args:
        runs: ``[r]`` the numbers of the runs.
        rule: the rule.
        agents: the number of agents in the network.
        parts: their inputs, those with as many and the same estimate together.
        layer: where the output layer lies in a message; if it is given, the rule's own ``head`` is
            not used.
        tuning: how the work is cut up.
    """

    def __init__(
        self,
        runs: Tensor,
        rule: WeightedAggregator,
        agents: int,
        parts: Sequence[Neighbourhoods],
        layer: OutputLayer | None,
        tuning: Tuning,
    ) -> None:
        self._runs, self._rule, self._agents, self._parts = runs, rule, agents, parts
        self._layer, self._tuning = layer, tuning
        self._kept: dict[object, list[Gathered]] = {}

    def __call__(self, sent: Sent, models: Tensor, shares: Tensor | None, map: Map) -> None:
        """Write the next models, and the weight given to poison if it is asked for."""
        kind = (sent.messages.shape, sent.messages.dtype)
        if kind not in self._kept:  # the pieces are the same for messages of the same kind
            self._kept = {kind: list(self._pieces(sent))}
        pieces = self._kept[kind]
        list(map(lambda piece: self._work(piece, sent, models, shares), pieces))

    def _pieces(self, sent: Sent) -> Iterator[Gathered]:
        """Runs and agents whose inputs fit into a piece of work."""
        length = sent.messages.shape[-1]
        # Inner products need some columns at a time, output layers all of them.
        held = self._tuning.piece_bytes * (1 if self._rule.reads == "output_layer" else 3)
        for part in self._parts:
            slots = part.slots + len(self._rule.remembers())
            # Inputs, and matrices like their Gram matrix: the larger of the two counts.
            per_slot = max(length * sent.messages.element_size(), 64 * slots)
            most = max(1, held // (per_slot * slots))
            for first in range(0, len(part.agents), most):
                here = part.some(first, min(first + most, len(part.agents)))
                together = max(1, most // len(here.agents))
                for start in range(0, len(self._runs), together):
                    yield Gathered(self._runs[start : start + together], here, self._agents)

    def _work(self, piece: Gathered, sent: Sent, models: Tensor, shares: Tensor | None) -> None:
        here = piece.here
        weights = self._weights(piece, sent).expand(len(piece.runs), -1, -1)
        combined = self._combine(piece, sent, weights).flatten(0, 1)
        own = piece.rows()[..., 0].flatten()
        models.view(-1, models.shape[-1]).index_copy_(0, own, combined)
        if shares is not None:
            poison = (weights[..., : here.slots] * here.poisoned).sum(-1)
            shares.view(-1)[own] = poison.flatten()

    def _weights(self, piece: Gathered, sent: Sent) -> Tensor:
        rule, here = self._rule, piece.here
        names = rule.remembers()
        if rule.reads == "nothing":
            return rule.weights(neighbourhood(here, here.mask, names))
        inputs = GatheredInputs.of(piece, sent, names)
        shape = (len(piece.runs), -1, here.slots + len(names))
        if rule.reads == "gram":
            gram = inner_products(inputs, self._tuning).view(*shape, shape[-1])
            finite = torch.isfinite(gram.diagonal(dim1=-2, dim2=-1))
            return rule.weights(neighbourhood(here, finite, names, gram))
        length = sent.messages.shape[-1]
        values = inputs.columns(slice(length)).view(*shape, length)
        finite = torch.isfinite(values.sum(-1))
        layers = GatheredOutputLayers.of(
            layer_of(rule, self._layer).of(values), finite, self._tuning
        )
        return rule.weights(neighbourhood(here, finite, names, output_layers=layers))

    def _combine(self, piece: Gathered, sent: Sent, weights: Tensor) -> Tensor:
        """``[r, n, D]`` the inputs, and what is remembered, added up by their weights."""
        dtype, length = sent.messages.dtype, sent.messages.shape[-1]
        inputs = weights[..., : piece.here.slots].to(dtype)
        rows = piece.rows()
        replaced = piece.false_slots(sent.false)
        if replaced is not None:
            inputs = inputs.clone(memory_format=torch.contiguous_format)
            slot, which = (torch.from_numpy(part).to(inputs.device) for part in replaced)
            lied = inputs.view(-1)[slot]
            inputs.view(-1)[slot] = 0
        table = sent.messages.view(-1, length)
        combined = weighted_rows(table, rows.flatten(0, 1), inputs.flatten(0, 1))
        if replaced is not None:
            assert sent.false is not None
            receiver = slot // piece.here.slots
            combined.index_add_(0, receiver, lied.unsqueeze(-1) * sent.false.values[which])
        combined = combined.view(*rows.shape[:2], length)
        for place, name in enumerate(self._rule.remembers(), start=piece.here.slots):
            known = sent.remembered[name][piece.runs[:, None], piece.here.agents]
            combined += known * weights[..., place : place + 1].to(dtype)
        if some(~torch.isfinite(combined.sum())):
            gathered = GatheredInputs.of(piece, sent, self._rule.remembers())
            values = gathered.columns(slice(length)).view(*rows.shape[:2], -1, length)
            careful = combine_carefully(weights.to(dtype).unsqueeze(-2), values)
            return careful.squeeze(-2)
        return combined


@dataclass(frozen=True)
class GatheredInputs:
    """The inputs at some places, gathered when they are asked for, in memory used again.

    A place is one agent in one run. What the rule remembers follows the inputs.

    Attributes:
        rows: ``[places, m]`` rows of the messages ``[runs · W, D]``.
        sent: the messages.
        remembered: ``[runs, W, D]`` what follows them.
        agents: the number of agents.
        false: ``[links]`` places, slots and rows of false messages, on the host, if there are any.
    """

    rows: Tensor
    sent: Sent
    remembered: tuple[Tensor, ...]
    agents: int
    false: tuple[Ints, Ints, Ints] | None = None

    @classmethod
    def of(cls, piece: Gathered, sent: Sent, names: Sequence[str]) -> "GatheredInputs":
        """The inputs of a piece of work, and what is remembered by name."""
        replaced, false = piece.false_slots(sent.false), None
        if replaced is not None:
            slots = piece.here.slots
            false = replaced[0] // slots, replaced[0] % slots, replaced[1]
        rows = piece.rows().flatten(0, 1)
        return cls(rows, sent, tuple(sent.remembered[n] for n in names), piece.agents, false)

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(places, m, D)``."""
        places, inputs = self.rows.shape
        return places, inputs + len(self.remembered), self.sent.messages.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the messages."""
        return self.sent.messages.dtype

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.sent.messages.device

    def some(self, places: slice | Tensor) -> "GatheredInputs":
        """The inputs at some of the places."""
        false = self.false
        if false is not None:
            chosen = places.cpu().numpy() if isinstance(places, Tensor) else places
            numbers = np.arange(len(self.rows))[chosen]
            where = np.full(len(self.rows), -1)
            where[numbers] = np.arange(len(numbers))
            inside = where[false[0]] >= 0
            false = where[false[0]][inside], false[1][inside], false[2][inside]
        return replace(self, rows=self.rows[places], false=false)

    def columns(self, columns: slice) -> Tensor:
        """``[places, m, width]`` some columns; valid until the thread gathers again."""
        table = self.sent.messages.view(-1, self.shape[-1])[:, columns]
        rows = self.rows
        if self.remembered:
            rows = torch.cat([rows, *[rows[:, :1]] * len(self.remembered)], dim=-1)
        shape = (rows.numel(), table.shape[-1])
        values = workspace("inputs", shape, table.dtype, table.device)
        torch.index_select(table, 0, rows.flatten(), out=values)
        values = values.view(*rows.shape, -1)
        own = self.rows[:, 0]
        for slot, known in enumerate(self.remembered, start=self.rows.shape[1]):
            values[:, slot] = known[own // self.agents, own % self.agents][:, columns]
        if self.false is not None and self.sent.false is not None:
            place, slots, which = (torch.from_numpy(part).to(self.device) for part in self.false)
            values[place, slots] = self.sent.false.values[which][:, columns]
        return values


def weighted_rows(table: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """``[n, D]`` sums ``Σ_j weights[i, j] · table[rows[i, j]]``, nothing being gathered.

    Args:
        table: ``[rows, D]``.
        rows: ``[n, m]``.
        weights: ``[n, m]`` of the table's type.
    """
    sums: Tensor = torch.nn.functional.embedding_bag(
        rows, table, per_sample_weights=weights, mode="sum"
    )
    return sums


def neighbourhood(
    here: Neighbourhoods,
    finite: Tensor,
    remembered: Sequence[str],
    gram: Tensor | None = None,
    output_layers: OutputLayers | None = None,
) -> Neighbourhood:
    """What agents have after the exchange, for a rule; ``gram`` is written over.

    Args:
        here: their inputs.
        finite: ``[..., m]`` whether there is something finite in each slot.
        remembered: the names of what follows the inputs.
        gram: ``[..., m, m]`` inner products, if the rule reads them.
        output_layers: the same for output layers.
    """
    if gram is not None:
        both = finite.unsqueeze(-1) & finite.unsqueeze(-2)
        gram = gram.masked_fill_(~both, 0)
    mask, mixing, index = here.mask, here.mixing, here.index
    if remembered:
        more = (0, len(remembered))
        mask, mixing, index = pad(mask, more), pad(mixing, more), pad(index, more)
        if finite.shape[-1] < mask.shape[-1]:  # nothing was looked at
            finite = pad(finite, more, value=True)
    return Neighbourhood(
        mask=mask,
        finite=finite,
        mixing=mixing,
        estimate=here.estimate,
        largest_estimate=here.largest_estimate,
        index=index,
        gram=gram,
        output_layers=output_layers,
        remembered={name: here.slots + place for place, name in enumerate(remembered)},
    )


def layer_of(rule: Aggregator, known: OutputLayer | None) -> OutputLayer:
    """Where the output layer lies in a message: where the model has it, or where the rule says.

    Raises:
        BezoarError: where nobody knows.
    """
    layer = known or rule.output_layer()
    if layer is None:
        raise BezoarError(
            f"aggregator {rule.name}: give head=(classes, features), the shape of the output "
            "layer at the start of a message"
        )
    return layer


def combine_carefully(weights: Tensor, values: Tensor) -> Tensor:
    """``weights [..., r, n] @ values [..., n, D]`` where zero times infinity is zero.

    An agent that does give weight to a message that is not finite gets NaN.
    """
    bad = ~torch.isfinite(values).all(-1)
    models = weights @ values.masked_fill(bad.unsqueeze(-1), 0)
    reached = (weights * bad.unsqueeze(-2)).sum(-1) != 0
    return models.masked_fill_(reached.unsqueeze(-1), torch.nan)
