"""Small dense networks: one Gram matrix and one matrix product for the whole network."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product

import torch
from torch import Tensor

from bezoar.aggregators._base import WeightedAggregator
from bezoar.aggregators._gathered import combine_carefully, head_products, neighbourhood
from bezoar.aggregators._gram import Map, gram, spans
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._seats import Seats, seat
from bezoar.networks import Network

#: Bytes of messages that are one piece of work.
PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class _Group:
    """Runs side by side whose rules read the same from the same seats.

    Attributes:
        runs: which.
        rules: each rule with its runs, counted within the group.
        seats: everyone's inputs.
        pairs: ``[networks, W·m·m]`` where each neighbourhood's pairs are in ``[W, W]``.
        constant: ``[networks, W, m]`` the weights, where they depend on the network alone.
    """

    runs: slice
    rules: Sequence[tuple[slice, WeightedAggregator]]
    seats: Seats
    pairs: Tensor
    constant: Tensor | None

    @property
    def reads(self) -> str:
        return self.rules[0][1].reads


class DenseExchange:
    """Weighted rules on small networks.

    Args:
        rules: one rule for all runs, or one a run; those that read the same side by side.
        networks: one network for all runs, or one a run.
        device: where the messages will be.
        map: what goes through the pieces of work.
    """

    def __init__(
        self,
        rules: Sequence[WeightedAggregator],
        networks: Sequence[Network],
        device: torch.device,
        map: Map,
    ) -> None:
        self._agents = networks[0].agents
        self._map = map
        self._groups = []
        first = 0
        for _, same in groupby(rules, key=lambda rule: (rule.reads, rule.wiring())):
            alike = list(same)
            runs = slice(first, first + len(alike)) if len(rules) > 1 else slice(None)
            self._groups.append(self._group(alike, runs, networks, device))
            first += len(alike)
        reading = [group.runs for group in self._groups if group.reads == "gram"]
        self._reading = slice(reading[0].start, reading[-1].stop) if reading else None

    def _group(
        self,
        rules: Sequence[WeightedAggregator],
        runs: slice,
        networks: Sequence[Network],
        device: torch.device,
    ) -> _Group:
        here = networks if len(networks) == 1 else networks[runs]
        [seats] = seat(tuple(here), *rules[0].wiring())
        seats = seats.to(device)
        index = seats.index
        pairs = (index.unsqueeze(-1) * self._agents + index.unsqueeze(-2)).flatten(1)
        parts = []
        for rule, same in groupby(range(len(rules)), key=rules.__getitem__):
            places = list(same)
            part = slice(places[0], places[-1] + 1) if len(rules) > 1 else slice(None)
            parts.append((part, rule))
        constant = None
        if rules[0].reads == "nothing":
            constant = _weights(parts, neighbourhood(seats, seats.mask))
        return _Group(runs, parts, seats, pairs, constant)

    def step(
        self, messages: Tensor, head: Tensor | None, share: bool, models: Tensor
    ) -> Tensor | None:
        """Aggregate ``[runs, W, D]`` into ``models``; on request ``[runs, W]`` poison shares."""
        agents = self._agents
        matrix = messages.new_zeros(len(messages), agents, agents)
        shares = messages.new_empty(len(messages), agents, dtype=torch.float64) if share else None
        products = offset = None
        if self._reading is not None:
            products, offset = gram(messages[self._reading], self._map), self._reading.start or 0
        for group in self._groups:
            runs = group.runs
            if group.constant is not None:
                weights = group.constant
            elif products is not None and offset is not None and group.reads == "gram":
                stop = None if runs.stop is None else runs.stop - offset
                own = products[slice((runs.start or 0) - offset, stop)]
                finite = torch.isfinite(own.diagonal(dim1=-2, dim2=-1))
                weights = _weights(group.rules, self._seated(group, finite, gram=own))
            else:
                assert head is not None
                finite = torch.isfinite(messages[runs].sum(-1))
                raw, centred = head_products(head[runs], finite)
                seated = self._seated(group, finite, head=raw, head_centred=centred)
                weights = _weights(group.rules, seated)
            part = matrix[runs]
            shape = (len(part), -1, -1)
            part.scatter_add_(
                -1, group.seats.index.expand(shape), weights.to(part.dtype).expand(shape)
            )
            if shares is not None:
                shares[runs] = (weights * group.seats.poisoned).sum(-1)
        self._combine(matrix, messages, models)
        return shares

    def _combine(self, matrix: Tensor, messages: Tensor, models: Tensor) -> None:
        def multiply(piece: tuple[slice, slice]) -> None:
            runs, span = piece
            torch.bmm(matrix[runs], messages[runs, :, span], out=models[runs, :, span])

        size = messages[0].numel() * messages.element_size()
        some = max(1, PIECE_BYTES // size)
        parts = [slice(first, first + some) for first in range(0, len(messages), some)]
        list(self._map(multiply, product(parts, spans(messages.shape[-1]))))
        # A value that is not finite reaches every row of the product, even with weight zero.
        if not torch.isfinite(models[:, 0].sum()):
            models.copy_(combine_carefully(matrix, messages))

    def _seated(self, group: _Group, finite: Tensor, **products: Tensor) -> Neighbourhood:
        runs = len(finite)
        index = group.seats.index.expand(runs, -1, -1)
        at_slots = finite.unsqueeze(1).expand(-1, self._agents, -1).gather(-1, index)
        return neighbourhood(
            group.seats,
            at_slots & group.seats.mask,
            **{name: self._gather(group, values) for name, values in products.items()},
        )

    def _gather(self, group: _Group, products: Tensor) -> Tensor:
        """``[runs, ..., W, W]`` for the network as ``[runs, W, ..., m, m]`` at the seats."""
        runs, slots = len(products), group.seats.slots
        middle = products.shape[1:-2]
        flat = products.reshape(runs, -1, self._agents**2)
        pairs = group.pairs.unsqueeze(1).expand(runs, flat.shape[1], -1)
        gathered = flat.gather(-1, pairs).view(runs, -1, self._agents, slots, slots)
        return gathered.movedim(1, 2).reshape(runs, self._agents, *middle, slots, slots)


def _weights(
    rules: Sequence[tuple[slice, WeightedAggregator]], neighbourhood: Neighbourhood
) -> Tensor:
    """``[runs, W, m]`` what each rule makes of its runs."""
    if len(rules) == 1:
        return rules[0][1].weights(neighbourhood)
    return torch.cat([rule.weights(neighbourhood.of(runs)) for runs, rule in rules])
