"""Small dense networks: one Gram matrix and one matrix product for the whole network."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

import torch
from torch import Tensor

from bezoar.aggregators._base import WeightedAggregator
from bezoar.aggregators._gathered import combine_carefully, head_of, neighbourhood
from bezoar.aggregators._gram import Map, gram, spans
from bezoar.aggregators._heads import NetworkHeads, head_products
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._seats import Seats, seat
from bezoar.networks import Network

#: Bytes of messages that are one piece of work.
PIECE_BYTES = 4 << 20

#: Bytes of neighbourhoods' matrices held at a time, and how many a rule makes of each.
SEATED_BYTES = 64 << 20
MATRICES = 8


@dataclass(frozen=True)
class _Group:
    """Runs side by side whose rules read the same from the same seats.

    Attributes:
        runs: which.
        rules: each rule with its runs, counted within the group.
        seats: everyone's inputs.
        constant: ``[networks, W, m]`` the weights, where they depend on the network alone.
    """

    runs: slice
    rules: Sequence[tuple[slice, WeightedAggregator]]
    seats: Seats
    constant: Tensor | None

    @property
    def first(self) -> WeightedAggregator:
        """One rule, which reads what all read."""
        return self.rules[0][1]

    def some_at_a_time(self, runs: int) -> Iterator[tuple[slice, Seats]]:
        """The seats, not so many at a time that their matrices would fill the memory."""
        agents = len(self.seats.agents)
        some = max(1, SEATED_BYTES // (8 * MATRICES * runs * self.seats.slots**2))
        if self.constant is not None or some >= agents:
            yield slice(agents), self.seats
            return
        for start in range(0, agents, some):
            yield slice(start, start + some), self.seats.some(start, start + some)


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
        for _, same in groupby(rules, key=_kind):
            alike = list(same)
            runs = slice(first, first + len(alike)) if len(rules) > 1 else slice(None)
            here = networks if len(networks) == 1 else networks[runs]
            self._groups.append(_group(alike, runs, here, device))
            first += len(alike)
        reading = [group.runs for group in self._groups if group.first.reads == "gram"]
        self._reading = slice(reading[0].start, reading[-1].stop) if reading else None

    def step(
        self, messages: Tensor, head: Tensor | None, share: bool, models: Tensor
    ) -> Tensor | None:
        """Aggregate ``[runs, W, D]`` into ``models``; on request ``[runs, W]`` poison shares."""
        agents = self._agents
        matrix = messages.new_zeros(len(messages), agents, agents)
        shares = messages.new_empty(len(messages), agents, dtype=torch.float64) if share else None
        products, offset = None, 0
        if self._reading is not None:
            products, offset = gram(messages[self._reading], self._map), self._reading.start or 0
        for group in self._groups:
            runs = group.runs
            own = None
            if products is not None and group.first.reads == "gram":
                stop = None if runs.stop is None else runs.stop - offset
                own = products[slice((runs.start or 0) - offset, stop)]
            part = None if head is None else head[runs]
            weigh = _weigher(group, messages[runs], part, own)
            for place, seats in group.some_at_a_time(len(messages[runs])):
                weights = weigh(seats)
                rows = matrix[runs, place]
                index = seats.index.expand(len(rows), -1, -1)
                rows.scatter_add_(-1, index, weights.to(rows.dtype).expand(len(rows), -1, -1))
                if shares is not None:
                    shares[runs, place] = (weights * seats.poisoned).sum(-1)
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


def _kind(rule: WeightedAggregator) -> tuple[Any, ...]:
    """What rules must have in common to be one group; where output layers are is a rule's own."""
    return rule.reads, rule.wiring(), rule if rule.reads == "head" else None


def _group(
    rules: Sequence[WeightedAggregator],
    runs: slice,
    networks: Sequence[Network],
    device: torch.device,
) -> _Group:
    [seats] = seat(tuple(networks), *rules[0].wiring())
    seats = seats.to(device)
    parts = []
    for rule, same in groupby(range(len(rules)), key=rules.__getitem__):
        places = list(same)
        part = slice(places[0], places[-1] + 1) if len(rules) > 1 else slice(None)
        parts.append((part, rule))
    constant = None
    if rules[0].reads == "nothing":
        constant = _weights(parts, neighbourhood(seats, seats.mask))
    return _Group(runs, parts, seats, constant)


def _weigher(
    group: _Group, messages: Tensor, head: Tensor | None, products: Tensor | None
) -> Callable[[Seats], Tensor]:
    """What tells the weights ``[runs, seats, m]`` at some of a group's seats.

    Args:
        group: the group.
        messages: ``[runs, W, D]`` what is sent in its runs.
        head: ``[runs, W, classes, features]`` the output layers, if not where the rule says.
        products: ``[runs, W, W]`` the messages' inner products, if the rules read them.
    """
    if (constant := group.constant) is not None:
        return lambda seats: constant
    if products is not None:
        finite = torch.isfinite(products.diagonal(dim1=-2, dim2=-1))

        def by_gram(seats: Seats) -> Tensor:
            here = _at_slots(finite, seats)
            return _weights(group.rules, neighbourhood(seats, here, _at_pairs(products, seats)))

        return by_gram
    finite = torch.isfinite(messages.sum(-1))
    head = head_of(group.first, messages) if head is None else head
    raw, centred = head_products(head, finite)

    def by_head(seats: Seats) -> Tensor:
        heads = NetworkHeads(raw, centred, seats.index)
        return _weights(group.rules, neighbourhood(seats, _at_slots(finite, seats), heads=heads))

    return by_head


def _at_slots(finite: Tensor, seats: Seats) -> Tensor:
    """``[runs, seats, m]`` whether someone is there and finite, of ``[runs, W]``."""
    shape = (len(finite), *seats.index.shape[1:])
    everyone = finite.unsqueeze(1).expand(-1, shape[1], -1)
    return everyone.gather(-1, seats.index.expand(shape)) & seats.mask


def _at_pairs(products: Tensor, seats: Seats) -> Tensor:
    """``[runs, seats, m, m]`` the inner products of each neighbourhood, of ``[runs, W, W]``."""
    runs, agents, _ = products.shape
    pairs = seats.index.unsqueeze(-1) * agents + seats.index.unsqueeze(-2)
    shape = (runs, *pairs.shape[1:])
    return products.flatten(1).gather(1, pairs.flatten(1).expand(runs, -1)).view(shape)


def _weights(
    rules: Sequence[tuple[slice, WeightedAggregator]], neighbourhood: Neighbourhood
) -> Tensor:
    """``[runs, W, m]`` what each rule makes of its runs."""
    if len(rules) == 1:
        return rules[0][1].weights(neighbourhood)
    return torch.cat([rule.weights(neighbourhood.of(runs)) for runs, rule in rules])
