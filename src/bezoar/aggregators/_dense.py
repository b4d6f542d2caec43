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
    """Runs side by side with the same rule.

    Attributes:
        runs: which.
        rule: the rule.
        seats: everyone's inputs.
        pairs: ``[networks, W·m·m]`` where each neighbourhood's pairs are in ``[W, W]``.
        constant: ``[networks, W, m]`` the weights, where they depend on the network alone.
    """

    runs: slice
    rule: WeightedAggregator
    seats: Seats
    pairs: Tensor
    constant: Tensor | None


class DenseExchange:
    """Weighted rules on small networks.

    Args:
        rules: one rule for all runs, or one a run; those that read the same side by side.
        networks: one network for all runs, or one a run.
        device: where the messages will be.
        map: what goes through the pieces of long messages.
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
        for rule, same in groupby(rules):
            count = len(list(same))
            runs = slice(first, first + count) if len(rules) > 1 else slice(None)
            self._groups.append(self._group(rule, runs, networks, device))
            first += count
        reading = [group.runs for group in self._groups if group.rule.reads == "gram"]
        self._reading = slice(reading[0].start, reading[-1].stop) if reading else slice(0, 0)

    def _group(
        self,
        rule: WeightedAggregator,
        runs: slice,
        networks: Sequence[Network],
        device: torch.device,
    ) -> _Group:
        here = networks if len(networks) == 1 else networks[runs]
        [seats] = seat(tuple(here), *rule.wiring())
        seats = seats.to(device)
        index = seats.index
        pairs = (index.unsqueeze(-1) * self._agents + index.unsqueeze(-2)).flatten(1)
        constant = None
        if rule.reads == "nothing":
            constant = rule.weights(neighbourhood(seats, seats.mask))
        return _Group(runs, rule, seats, pairs, constant)

    def step(
        self, messages: Tensor, head: Tensor | None, share: bool, models: Tensor
    ) -> Tensor | None:
        """Aggregate ``[runs, W, D]`` into ``models``; on request ``[runs, W]`` poison shares."""
        agents = self._agents
        matrix = messages.new_zeros(len(messages), agents, agents)
        shares = messages.new_empty(len(messages), agents, dtype=torch.float64) if share else None
        whole = gram(messages[self._reading], self._map)
        offset = self._reading.start or 0
        for group in self._groups:
            runs = group.runs
            if group.constant is not None:
                weights = group.constant
            elif group.rule.reads == "gram":
                stop = None if runs.stop is None else runs.stop - offset
                own = whole[slice((runs.start or 0) - offset, stop)]
                finite = torch.isfinite(own.diagonal(dim1=-2, dim2=-1))
                weights = group.rule.weights(self._seated(group, finite, gram=own))
            else:
                assert head is not None
                finite = torch.isfinite(messages[runs].sum(-1))
                raw, centred = head_products(head[runs], finite)
                weights = group.rule.weights(
                    self._seated(group, finite, head=raw, head_centred=centred)
                )
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
