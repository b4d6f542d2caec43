"""Dense networks: one matrix of inner products and one matrix product for the whole network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from bezoar._questions import some
from bezoar.aggregators import Neighbourhood, OutputLayer, WeightedAggregator
from bezoar.exchange._inner_products import (
    closer_products,
    network_products,
    product_type,
    too_close,
)
from bezoar.exchange._neighbourhoods import Neighbourhoods, padded
from bezoar.exchange._output_layers import NetworkOutputLayers, layer_products
from bezoar.exchange._sent import Ints, Sent
from bezoar.exchange._sparse import combine_carefully, layer_of, neighbourhood
from bezoar.exchange._tuning import Map, Tuning
from bezoar.networks import Network

#: Matrices as large as the Gram matrix that a rule makes of a neighbourhood.
MATRICES = 8


class DenseExchange:
    """Rules by weights on dense networks of one size.

    Args:
        runs: the numbers of the runs.
        rules: one rule a run.
        networks: one network a run.
        device: where the messages will be.
        layer: where the output layer lies in a message; if it is given, a rule's own ``head`` is
            not used.
        map: what goes through the pieces of work.
        tuning: how the work is cut up.
    """

    def __init__(
        self,
        runs: Sequence[int],
        rules: Sequence[WeightedAggregator],
        networks: Sequence[Network],
        device: torch.device,
        layer: OutputLayer | None,
        map: Map,
        tuning: Tuning,
    ) -> None:
        self._runs, self._map, self._tuning, self._layer = list(runs), map, tuning, layer
        self._agents = networks[0].agents
        self._stretches = _stretches(self._runs)
        places: dict[tuple[object, ...], list[int]] = {}
        for place, rule in enumerate(rules):
            # Each rule may say where the output layer is, so those that read it are groups alone.
            alone = rule if rule.reads == "output_layer" else None
            kind = (rule.reads, rule.wiring(), rule.remembers(), alone)
            places.setdefault(kind, []).append(place)
        self._groups = [_group(here, rules, networks, device) for here in places.values()]
        self._remembered = tuple(dict.fromkeys(n for rule in rules for n in rule.remembers()))
        self._reading = [place for place, rule in enumerate(rules) if rule.reads == "gram"]

    def __call__(self, sent: Sent, models: Tensor, shares: Tensor | None) -> None:
        """Write the next models ``[runs, W, D]`` and, if asked, the weight given to poison."""
        table = _Table(sent, self._runs, self._remembered)
        matrices = sent.messages.new_zeros(len(self._runs), self._agents, table.length)
        products = None
        if self._reading:
            rows = [table.rows[place] for place in self._reading]
            products = torch.full(
                (len(self._runs), table.length, table.length),
                torch.nan,
                dtype=torch.float64,
                device=matrices.device,
            )
            products[self._reading] = network_products(rows, self._map, self._tuning)
        for group in self._groups:
            weigh = self._weigher(group, table, products)
            for agents in self._some_at_a_time(group):
                here = group.neighbourhoods.some(agents.start, agents.stop)
                slots = table.slots(group, here, agents.start)
                weights = weigh(here, slots).expand(len(group.places), -1, -1)
                rows_of = slots.expand_as(weights)
                part = matrices.new_zeros(*weights.shape[:2], table.length)
                part.scatter_add_(-1, rows_of, weights.to(part.dtype))
                matrices[group.index, agents] = part
                if shares is not None:
                    runs = [self._runs[place] for place in group.places]
                    poison = (weights[..., : here.slots] * here.poisoned).sum(-1)
                    shares[runs, agents] = poison
        self._combine(matrices, table, models)

    def _some_at_a_time(self, group: "_Group") -> list[slice]:
        """The agents, not so many at a time that their matrices would fill the memory."""
        size = 8 * MATRICES * len(group.places) * group.neighbourhoods.slots**2
        most = max(1, self._tuning.matrix_bytes // size)
        if group.reads == "nothing":
            most = self._agents
        return [
            slice(first, min(first + most, self._agents)) for first in range(0, self._agents, most)
        ]

    def _weigher(
        self, group: "_Group", table: "_Table", products: Tensor | None
    ) -> Callable[[Neighbourhoods, Tensor], Tensor]:
        """What gives the weights ``[runs, agents, m]`` at some of the group's agents."""
        if group.reads == "nothing":
            return lambda here, slots: group.constant_weights
        if group.reads == "gram":
            assert products is not None
            found = products[group.index]
            finite = torch.isfinite(found.diagonal(dim1=-2, dim2=-1))
            dtype = product_type(table.rows[0], self._tuning)
            # Products in a wider type than the messages' are as exact as the messages are.
            widened = dtype != table.rows[0].dtype
            any_blurred = not widened and some(too_close(found, dtype))

            def by_gram(here: Neighbourhoods, slots: Tensor) -> Tensor:
                gram = _at_pairs(found, slots)
                present = _at_slots(finite, slots) & _present(here, slots)
                if any_blurred:
                    self._take_closer_references(gram, present, slots, group, table)
                return group.weights(neighbourhood(here, present, group.remembered, gram))

            return by_gram
        layer = layer_of(group.rules[0][1], self._layer)
        layers = torch.stack([layer.of(table.rows[place]) for place in group.places])
        finite = self._finite([table.rows[place] for place in group.places])
        raw, centred = layer_products(layers, finite)

        def by_output_layer(here: Neighbourhoods, slots: Tensor) -> Tensor:
            present = _at_slots(finite, slots) & _present(here, slots)
            known = NetworkOutputLayers(layers, finite, raw, centred, slots, present)
            return group.weights(
                neighbourhood(here, present, group.remembered, output_layers=known)
            )

        return by_output_layer

    def _finite(self, rows: Sequence[Tensor]) -> Tensor:
        """``[runs, n]`` which messages ``[n, D]`` of each run are free of NaN and infinity."""

        if rows[0].shape[-1] <= self._tuning.long:
            return torch.isfinite(torch.stack([each.sum(-1) for each in rows]))

        def add_up(piece: tuple[int, slice]) -> Tensor:
            run, span = piece
            return rows[run][:, span].sum(-1)

        spans = self._tuning.spans(rows[0].shape[-1])
        pieces = [(run, span) for span in spans for run in range(len(rows))]
        sums = torch.stack(list(self._map(add_up, pieces)))
        return torch.isfinite(sums.view(len(spans), len(rows), -1).sum(0))

    def _take_closer_references(
        self, gram: Tensor, present: Tensor, slots: Tensor, group: "_Group", table: "_Table"
    ) -> None:
        """Replace the inner products of neighbourhoods that are far from their run's reference.

        Args:
            gram: ``[runs, agents, m, m]`` the inner products; is written to.
            present: ``[runs, agents, m]`` false at padding and at what is not finite.
            slots: ``[runs or 1, agents, m]`` the messages behind their slots.
            group: the runs.
            table: the messages.
        """
        dtype = product_type(table.rows[0], self._tuning)
        places = too_close(gram, dtype, present).any(-1).nonzero().tolist()
        slots = slots.expand(len(gram), -1, -1)

        def recompute(place: list[int]) -> Tensor:
            run, agent = place
            here = present[run, agent].nonzero().flatten()
            inputs = table.rows[group.places[run]][slots[run, agent, here]]
            closer = gram[run, agent].clone()
            closer[here[:, None], here] = closer_products(inputs, closer[here][:, here])
            return closer

        size = len(places) * slots.shape[-1] * table.rows[0][0].nbytes
        through = self._map if size > self._tuning.piece_bytes else map
        for (run, agent), closer in zip(places, through(recompute, places), strict=True):
            gram[run, agent] = closer

    def _combine(self, matrices: Tensor, table: "_Table", models: Tensor) -> None:
        def multiply(piece: tuple[slice, slice]) -> Tensor:
            places, span = piece
            first = self._runs[places.start]
            out = models[first : first + places.stop - places.start, :, span]
            torch.bmm(matrices[places], table.stacked(places)[:, :, span], out=out)
            return out[:, 0].sum(-1)

        size = table.rows[0].numel() * models.element_size()
        most = max(1, 2 * self._tuning.block_bytes // size)
        pieces = [
            (slice(start, min(start + most, places.stop)), span)
            for span in self._tuning.spans(models.shape[-1])
            for places in self._stretches
            for start in range(places.start, places.stop, most)
        ]
        sums = list(self._map(multiply, pieces))
        # A value that is not finite reaches every row of the product, even with weight zero.
        if not some(~torch.isfinite(torch.cat(sums))):
            return
        reached = {
            place
            for (places, _), found in zip(pieces, sums, strict=True)
            for place, finite in enumerate(torch.isfinite(found).tolist(), start=places.start)
            if not finite
        }
        for place in reached:
            models[self._runs[place]] = combine_carefully(matrices[place], table.rows[place])


@dataclass(frozen=True)
class _Group:
    """Runs whose rules read the same from the same kind of neighbourhoods.

    Attributes:
        places: which runs, by their places within the exchange.
        index: the same as a tensor.
        rules: each rule with its runs, counted within the group.
        neighbourhoods: everyone's inputs.
    """

    places: list[int]
    index: Tensor
    rules: Sequence[tuple[slice, WeightedAggregator]]
    neighbourhoods: Neighbourhoods

    @property
    def reads(self) -> str:
        """What all the rules read."""
        return self.rules[0][1].reads

    @property
    def remembered(self) -> tuple[str, ...]:
        """What all the rules remember."""
        return self.rules[0][1].remembers()

    @cached_property
    def constant_weights(self) -> Tensor:
        """``[runs, agents, m]`` the weights of rules that read nothing of the messages."""
        here = self.neighbourhoods
        return self.weights(neighbourhood(here, here.mask, self.remembered))

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[runs, agents, m]`` what each rule makes of its runs."""
        found = []
        for runs, rule in self.rules:
            weights = rule.weights(neighbourhood.of(runs))
            found.append(weights.expand(runs.stop - runs.start, -1, -1))
        return torch.cat(found) if len(found) > 1 else found[0]


def _group(
    places: Sequence[int],
    rules: Sequence[WeightedAggregator],
    networks: Sequence[Network],
    device: torch.device,
) -> _Group:
    by_rule: dict[WeightedAggregator, list[int]] = {}
    for place in places:
        by_rule.setdefault(rules[place], []).append(place)
    ordered = [place for same in by_rule.values() for place in same]
    parts, first = [], 0
    for rule, same in by_rule.items():
        parts.append((slice(first, first + len(same)), rule))
        first += len(same)
    here = tuple(networks[place] for place in ordered)
    distinct = here if len(set(here)) > 1 else here[:1]
    found = padded(distinct, *rules[ordered[0]].wiring()).to(device)
    return _Group(ordered, torch.tensor(ordered, device=device), parts, found)


class _Table:
    """Everything that may be behind a slot, as rows of one matrix a run.

    First come the agents' messages, then the models that rules remember, then false messages.

    Attributes:
        rows: ``[length, D]`` for each run.
        length: the number of rows.
    """

    def __init__(self, sent: Sent, runs: Sequence[int], remembered: Sequence[str]) -> None:
        agents, device = sent.messages.shape[1], sent.messages.device
        self._names = {name: place + 1 for place, name in enumerate(remembered)}
        self._agents = agents
        self._links: dict[int, tuple[Ints, Ints, Ints]] = {}
        false: dict[int, Tensor] = {}
        if sent.false is not None:
            for place, run in enumerate(runs):
                links = np.flatnonzero(sent.false.runs == run)
                if len(links):
                    used, local = np.unique(sent.false.rows[links], return_inverse=True)
                    false[place] = sent.false.values[torch.from_numpy(used).to(device)]
                    senders, receivers = sent.false.senders[links], sent.false.receivers[links]
                    self._links[place] = senders, receivers, local
        self._false = agents * (1 + len(remembered))
        self.length = self._false + max(map(len, false.values()), default=0)
        self._table: Tensor | None = None
        self._messages, self._runs = sent.messages, runs
        if self.length == agents:
            self.rows = [sent.messages[run] for run in runs]
            return
        shape = (len(runs), self.length, sent.messages.shape[-1])
        self._table = table = sent.messages.new_zeros(shape)
        self.rows = list(table)
        for place, run in enumerate(runs):
            table[place, :agents] = sent.messages[run]
            for name, number in self._names.items():
                table[place, number * agents : (number + 1) * agents] = sent.remembered[name][run]
            if place in false:
                table[place, self._false : self._false + len(false[place])] = false[place]

    def stacked(self, places: slice) -> Tensor:
        """``[runs, length, D]`` the rows of runs that are numbered without gaps."""
        if self._table is not None:
            return self._table[places]
        first = self._runs[places.start]
        return self._messages[first : first + places.stop - places.start]

    def slots(self, group: _Group, here: Neighbourhoods, first: int) -> Tensor:
        """``[runs or 1, agents, m]`` the row behind each slot of some agents, from ``first`` on."""
        slots = here.index
        if self._links:
            slots = slots.repeat(len(group.places) // len(slots), 1, 1)
            for run, place in enumerate(group.places):
                if place in self._links:
                    links = np.stack(self._links[place])
                    links = links[:, (links[1] >= first) & (links[1] < first + len(here.agents))]
                    sender, receiver, local = torch.from_numpy(links).to(slots.device)
                    at = receiver - first
                    slot = (slots[run, at] == sender.unsqueeze(-1)).to(torch.uint8).argmax(-1)
                    slots[run, at, slot] = self._false + local
        own = here.agents.view(1, -1, 1).expand(len(slots), -1, 1)
        more = [own + self._names[name] * self._agents for name in group.remembered]
        return torch.cat([slots, *more], dim=-1) if more else slots


def _stretches(runs: Sequence[int]) -> list[slice]:
    """The places of runs that are numbered without gaps."""
    starts = [p for p, run in enumerate(runs) if p == 0 or run != runs[p - 1] + 1]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(runs)], strict=True)]


def _present(here: Neighbourhoods, slots: Tensor) -> Tensor:
    """``[runs or 1, agents, m]`` false at padding."""
    more = slots.shape[-1] - here.slots
    return torch.nn.functional.pad(here.mask, (0, more), value=True) if more else here.mask


def _at_slots(values: Tensor, slots: Tensor) -> Tensor:
    """``[runs, agents, m]`` of ``[runs, length]``."""
    shape = (len(values), *slots.shape[1:])
    return values.unsqueeze(1).expand(-1, shape[1], -1).gather(-1, slots.expand(shape))


def _at_pairs(products: Tensor, slots: Tensor) -> Tensor:
    """``[runs, agents, m, m]`` the products of neighbourhoods, of ``[runs, length, length]``."""
    runs, length, _ = products.shape
    pairs = slots.unsqueeze(-1) * length + slots.unsqueeze(-2)
    shape = (runs, *pairs.shape[1:])
    return products.flatten(1).gather(1, pairs.flatten(1).expand(runs, -1)).view(shape)
