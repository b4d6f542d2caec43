"""Dense networks: one matrix of inner products and one matrix product for the whole network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar._arrays import Ints
from bezoar._questions import some
from bezoar.aggregators import Neighbourhood, OutputLayer, WeightedAggregator
from bezoar.exchange._gathered import GatheredInputs, combine_carefully
from bezoar.exchange._inner_products import (
    inner_products,
    network_products,
    product_type,
    too_close,
)
from bezoar.exchange._links import Tell
from bezoar.exchange._neighbourhoods import Neighbourhoods, padded
from bezoar.exchange._output_layers import layer_of, read_layers
from bezoar.exchange._sent import Sent
from bezoar.exchange._tuning import Map, Tuning, side_by_side
from bezoar.networks import Network

#: Matrices as large as the Gram matrix that a rule makes of a neighbourhood.
MATRICES = 8


@dataclass(eq=False)
class DenseExchange:
    """Rules by weights that read the same, on dense networks of one size.

    Attributes:
        rules: each rule with the numbers of its runs.
        networks: the networks of all runs.
        device: where the messages will be.
        layer: where the output layer lies in a message; if it is given, a rule's own ``head`` is
            not used.
        tuning: how the work is cut up.
    """

    rules: Mapping[WeightedAggregator, Sequence[int]]
    networks: Sequence[Network]
    device: torch.device
    layer: OutputLayer | None
    tuning: Tuning

    def __post_init__(self) -> None:
        self._runs = [run for runs in self.rules.values() for run in runs]
        self._rule, *_ = self.rules
        each = [rule for rule, runs in self.rules.items() for _ in runs]
        everyone = padded(each, [self.networks[run] for run in self._runs]).to(self.device)
        # Not so many agents at a time that their matrices would fill the memory.
        size = 8 * MATRICES * len(each) * everyone.slots**2
        most = max(1, self.tuning.matrix_bytes // size)
        self._parts = everyone.some(everyone.agents if self._rule.reads == "nothing" else most)
        self._constant: dict[torch.dtype, _Weights] = {}

    def weigh(self, sent: Sent, tell: Tell | None, map: Map) -> "Weighted":
        """What everyone gives to the rows of its run; tell it, if somebody asks."""
        table = _Table(sent, self._runs, self._rule.remembers())
        if self._rule.reads != "nothing" or sent.false is not None:
            found = self._weigh(sent, table, map)
        else:  # the same in every exchange of messages of this type
            dtype = sent.messages.dtype
            if dtype not in self._constant:
                self._constant[dtype] = self._weigh(sent, table, map)
            found = self._constant[dtype]
        if tell is not None:
            for here, weights in found.given:
                tell(self._runs, here, weights)
        return Weighted(self._runs, found.matrices, table.all, table.where)

    def _weigh(self, sent: Sent, table: "_Table", map: Map) -> "_Weights":
        """What each rule gives to the rows of the table, some agents at a time."""
        reads, names, tuning = self._rule.reads, self._rule.remembers(), self.tuning
        rows = [table.all[place] for place in table.where]
        finite = layers = None
        if reads == "gram":
            products = network_products(table.all, table.where, map, tuning)
            finite = torch.isfinite(products.diagonal(dim1=-2, dim2=-1))
            dtype = product_type(rows[0], tuning)
            # Products in a wider type than the messages' are as exact as the messages are.
            blurred = dtype == rows[0].dtype and some(too_close(products, dtype))
        elif reads == "output_layer":
            layers = read_layers(rows, layer_of(self._rule, self.layer), map, tuning)
            finite = layers.all_finite.view(len(rows), -1)
        matrices, given = [], []
        for here in self._parts:
            slots, gram, present = table.slots(here), None, None
            if finite is not None:
                present = _at_slots(finite, slots)
                present &= pad(here.mask, (0, len(names)), value=True)
            if reads == "gram":
                gram = _at_pairs(products, slots)
                if blurred and some(again := too_close(gram, dtype, present).any(-1)):
                    gram[again] = self._closer_products(table.inputs(slots, again), map)
            elif layers is not None:
                run = torch.arange(len(rows), device=slots.device)[:, None, None]
                layers = layers.at(slots + table.length * run, len(rows))
            weights = self._weights(here.seen(sent, present, names, gram, layers))
            part = rows[0].new_zeros(*weights.shape[:2], table.length)
            part.scatter_add_(-1, slots.expand_as(weights), weights.to(part.dtype))
            matrices.append(part)
            given.append((here, weights))
        return _Weights(torch.cat(matrices, dim=1), given)

    def _weights(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[runs, agents, m]`` what each rule makes of its runs."""
        found: list[Tensor] = []
        first = 0
        for rule, runs in self.rules.items():
            weights = rule.weights(neighbourhood.of(slice(first, first + len(runs))))
            found.append(weights.expand(len(runs), -1, -1))
            first += len(runs)
        return torch.cat(found)

    def _closer_products(self, inputs: GatheredInputs, map: Map) -> Tensor:
        """``[n, m, m]`` inner products of neighbourhoods, each about a reference of its own."""

        def recompute(rows: Tensor) -> Tensor:
            return inner_products(replace(inputs, rows=rows), self.tuning)

        size = inputs.rows.shape[-1] * inputs.sent.messages[0, 0].nbytes
        most = max(1, self.tuning.piece_bytes // size)
        return torch.cat(list(map(recompute, inputs.rows.split(most))))


@dataclass(frozen=True)
class _Weights:
    """What rules give to the rows of a table.

    Attributes:
        matrices: ``[runs, W, length]`` the weights.
        given: some agents' neighbourhoods, and ``[runs, n, m]`` what they give to their slots.
    """

    matrices: Tensor
    given: Sequence[tuple[Neighbourhoods, Tensor]]


@dataclass(frozen=True)
class Weighted:
    """What everyone in some runs gives to the rows of a table.

    Attributes:
        runs: the numbers of the runs.
        matrices: ``[runs, W, length]`` the weights.
        table: ``[places, length, D]`` the rows.
        where: the place of each run.
    """

    runs: Sequence[int]
    matrices: Tensor
    table: Tensor
    where: Sequence[int]


def combine(found: Sequence[Weighted], models: Tensor, map: Map, tuning: Tuning) -> None:
    """Write the models ``[runs, W, D]``: the weights times the rows of one table.

    Runs that lie beside each other are multiplied together: threads can share long operations
    between them, short ones they cannot.
    """
    table, matrices = found[0].table, torch.cat([each.matrices for each in found])
    runs = [run for each in found for run in each.runs]
    where = [place for each in found for place in each.where]
    most = max(1, 2 * tuning.block_bytes // table[0].nbytes)

    def multiply(piece: tuple[list[int], slice]) -> Tensor:
        numbers, span = piece
        first, place, count = runs[numbers[0]], where[numbers[0]], len(numbers)
        if count == 1:  # perhaps a part of long messages, which only this writes in place
            out = models[first][:, span]
            torch.mm(matrices[numbers[0]], table[place][:, span], out=out)
            return out[:1].sum(-1)
        out = models[first : first + count]
        torch.bmm(matrices[numbers], table[place : place + count], out=out)
        return out[:, 0].sum(-1)

    spans = tuning.spans(models.shape[-1])
    pieces = list(product(side_by_side(most if len(spans) == 1 else 1, runs, where), spans))
    sums = list(map(multiply, pieces))
    # A value that is not finite reaches every row of the product, even with weight zero.
    if some(~torch.isfinite(torch.cat(sums))):
        bad = {
            number
            for (numbers, _), total in zip(pieces, sums, strict=True)
            for number, finite in zip(numbers, torch.isfinite(total).tolist(), strict=True)
            if not finite
        }
        for number in bad:
            rows = table[where[number]]
            models[runs[number]] = combine_carefully(matrices[number], rows)


class _Table:
    """Everything that may be behind a slot, as rows of one matrix a run.

    First come the agents' messages, then the models that rules remember, then false messages. The
    origin, which all agents have in common, is one row. A run is known by its place among the given
    ones.

    Attributes:
        length: the number of rows.
        all: ``[places, length, D]`` the rows of several runs.
        where: the place of each run.
    """

    def __init__(self, sent: Sent, runs: Sequence[int], remembered: Sequence[str]) -> None:
        self._sent, self._runs = sent, runs
        agents = sent.messages.shape[1]
        counts = {name: 1 if name == "origin" else agents for name in remembered}
        *first, self._first_false = accumulate(counts.values(), initial=agents)
        # The first row of each remembered model, and how many rows on that of the next agent is.
        self._remembered = [
            (row, int(count > 1)) for row, count in zip(first, counts.values(), strict=True)
        ]
        used: dict[int, Ints] = {}
        if sent.false is not None:
            # The number of each link's message among those of its run.
            self._number = np.zeros_like(sent.false.rows)
            for run in runs:
                here = sent.false.runs == run
                used[run], self._number[here] = np.unique(
                    sent.false.rows[here], return_inverse=True
                )
        self.length = self._first_false + max(map(len, used.values()), default=0)
        self.all, self.where = sent.messages, runs
        if self.length > agents:
            shape = (len(runs), self.length, sent.messages.shape[-1])
            self.all, self.where = sent.messages.new_zeros(shape), range(len(runs))
            for rows, run in zip(self.all, runs, strict=True):
                more = (sent.remembered[name][run, :count] for name, count in counts.items())
                known = [sent.messages[run], *more]
                if sent.false is not None:
                    known.append(sent.false.values[torch.from_numpy(used[run]).to(rows.device)])
                torch.cat(known, out=rows[: sum(map(len, known))])

    def slots(self, here: Neighbourhoods) -> Tensor:
        """``[runs or 1, agents, m]`` the row behind each slot of some agents."""
        slots = here.index
        if self._sent.false is not None:
            links = self._sent.false.behind(self._runs, here.on_host)
            rows = np.where(links >= 0, self._first_false + self._number[links], here.on_host)
            slots = torch.from_numpy(rows).to(slots.device)
        own = here.index[..., :1].expand(len(slots), -1, 1)
        more = [first + step * own for first, step in self._remembered]
        return torch.cat([slots, *more], dim=-1) if more else slots

    def inputs(self, slots: Tensor, where: Tensor) -> GatheredInputs:
        """The inputs behind the slots of some neighbourhoods ``[runs, agents]``."""
        first = self.length * torch.tensor(self.where, device=slots.device)
        return GatheredInputs(Sent(self.all), (slots + first[:, None, None])[where])


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
