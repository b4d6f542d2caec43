"""Dense networks: one matrix of inner products and one matrix product for the whole network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar._questions import some
from bezoar.aggregators import Neighbourhood, OutputLayer, WeightedAggregator
from bezoar.exchange._gathered import combine_carefully
from bezoar.exchange._inner_products import Part
from bezoar.exchange._links import Tell
from bezoar.exchange._neighbourhoods import Neighbourhoods, padded
from bezoar.exchange._output_layers import finite_rows, layer_of, read_layers
from bezoar.exchange._sent import Sent
from bezoar.exchange._table import Table, TableProducts, at_slots
from bezoar.exchange._tuning import Map, Tuning, side_by_side
from bezoar.exchange._update_sums import add_updates
from bezoar.networks import Network

#: Matrices as large as the Gram matrix that a rule makes of a neighbourhood.
MATRICES = 8


#: What rules give to the rows of a table, ``[runs, W, length]``; and some agents' neighbourhoods,
#: each with what they give to their slots, ``[runs, n, m]``.
_Weights = tuple[Tensor, Sequence[tuple[Neighbourhoods, Tensor]]]


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
        if self._rule.sums_updates():
            layer = layer_of(self._rule, self.layer)
            size += 8 * len(each) * everyone.slots * layer.classes * layer.features
        most = max(1, self.tuning.matrix_bytes // size)
        self._parts = everyone.some(everyone.agents if self._rule.reads == "nothing" else most)
        self._constant: dict[torch.dtype, _Weights] = {}

    def weigh(self, sent: Sent, tell: Tell | None, map: Map) -> "Weighted":
        """What everyone gives to the rows of its run; tell it, if somebody asks."""
        table = Table(sent, self._runs, self._rule.remembers())
        if self._rule.reads != "nothing" or sent.false is not None:
            matrices, given = self._weigh(sent, table, map)
        else:  # the same in every exchange of messages of this type
            dtype = sent.messages.dtype
            if dtype not in self._constant:
                self._constant[dtype] = self._weigh(sent, table, map)
            matrices, given = self._constant[dtype]
        if tell is not None:
            for here, weights in given:
                tell(self._runs, here, weights)
        parts = table.parts
        names = self._rule.remembers()
        if names and given[0][1].shape[-1] == given[0][0].slots:  # they are given nothing
            columns = list(matrices.split([part.rows.shape[1] for part in parts], dim=-1))
            parts = [parts[0], *parts[1 + len(names) :]]
            matrices = torch.cat([columns[0], *columns[1 + len(names) :]], dim=-1)
        return Weighted(self._runs, matrices, parts)

    def _weigh(self, sent: Sent, table: Table, map: Map) -> _Weights:
        """What each rule gives to the rows of the table, some agents at a time."""
        reads, names, tuning = self._rule.reads, self._rule.remembers(), self.tuning
        runs = range(len(self._runs))
        finite = products = layers = of_rows = None
        if self._rule.sums_updates():
            of_rows, finite = self._layers(table, map)
        elif reads == "gram":
            products = TableProducts(table, map, tuning)
            finite = products.finite
        elif reads == "output_layer":
            layers = read_layers(table.of_runs(), layer_of(self._rule, self.layer), map, tuning)
            finite = layers.all_finite.view(len(runs), -1)
        matrices, given = [], []
        for here in self._parts:
            slots, gram, present = table.slots(here), None, None
            if finite is not None:
                present = at_slots(finite, slots)
                present &= pad(here.mask, (0, len(names)), value=True)
                if products is not None:
                    gram = products.at(slots, present)
                if of_rows is not None and sent.sums is not None:
                    run = torch.arange(len(runs), device=slots.device)[:, None, None]
                    gram = add_updates(sent.sums, self._runs, here, of_rows[run, slots], present)
            distances = None
            if reads == "distances":
                assert sent.distances is not None
                distances = here.of_links(sent.distances, self._runs)
                present = torch.isfinite(distances) & here.mask
            if layers is not None:
                run = torch.tensor(runs, device=slots.device)[:, None, None]
                layers = layers.at(slots + table.length * run, len(runs))
            seen = here.seen(sent, present, names, gram, layers, distances=distances)
            weights = self._weights(seen)
            part = sent.messages.new_zeros(*weights.shape[:2], table.length)
            rows = slots[..., : weights.shape[-1]].expand_as(weights)
            part.scatter_add_(-1, rows, weights.to(part.dtype))
            matrices.append(part)
            given.append((here, weights))
        return torch.cat(matrices, dim=1), given

    def _layers(self, table: Table, map: Map) -> tuple[Tensor, Tensor]:
        """``[runs, length, width]`` output layers, and ``[runs, length]`` which rows are finite."""
        layer = layer_of(self._rule, self.layer)
        layers, finite = [], []
        for parts in table.by_run():
            layers.append(torch.cat([layer.of(rows).flatten(1) for rows in parts]))
            finite.append(torch.cat([finite_rows(rows, map, self.tuning) for rows in parts]))
        return torch.stack(layers), torch.stack(finite)

    def _weights(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[runs, agents, m]`` what each rule makes of its runs."""
        found: list[Tensor] = []
        first = 0
        for rule, runs in self.rules.items():
            weights = rule.weights(neighbourhood.of(slice(first, first + len(runs))))
            found.append(weights.expand(len(runs), -1, -1))
            first += len(runs)
        # Some may leave out what they remember.
        most = max(weights.shape[-1] for weights in found)
        return torch.cat([pad(weights, (0, most - weights.shape[-1])) for weights in found])


@dataclass(frozen=True)
class Weighted:
    """What everyone in some runs gives to the rows of a table.

    Attributes:
        runs: the numbers of the runs.
        matrices: ``[runs, W, length]`` the weights.
        parts: the rows.
    """

    runs: Sequence[int]
    matrices: Tensor
    parts: Sequence[Part]


def combine(found: Sequence[Weighted], models: Tensor, map: Map, tuning: Tuning) -> None:
    """Write the models ``[runs, W, D]``: the weights times the rows of tables with the same parts.

    Runs that lie beside each other are multiplied together: threads can share long operations
    between them, short ones they cannot.
    """
    runs = [run for each in found for run in each.runs]
    parts = [
        Part(same[0].rows, [place for part in same for place in part.where])
        for same in zip(*(each.parts for each in found), strict=True)
    ]
    matrices = torch.cat([each.matrices for each in found])
    columns = matrices.split([part.rows.shape[1] for part in parts], dim=-1)
    most = max(1, 2 * tuning.block_bytes // sum(part.rows[0].nbytes for part in parts))

    def multiply(piece: tuple[list[int], slice]) -> Tensor:
        numbers, span = piece
        first, count = runs[numbers[0]], len(numbers)
        alone = count == 1  # perhaps a part of long messages, which only this writes in place
        out = models[first][:, span] if alone else models[first : first + count]
        for place, (weights, part) in enumerate(zip(columns, parts, strict=True)):
            begin, beta = part.where[numbers[0]], min(place, 1)
            if alone:
                torch.addmm(out, weights[numbers[0]], part.rows[begin][:, span], beta=beta, out=out)
            else:
                rows = part.rows[begin : begin + count]
                torch.baddbmm(out, weights[numbers], rows, beta=beta, out=out)
        return (out[:1] if alone else out[:, 0]).sum(-1)

    spans = tuning.spans(models.shape[-1])
    together = side_by_side(most if len(spans) == 1 else 1, runs, *(part.where for part in parts))
    pieces = list(product(together, spans))
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
            rows = torch.cat([part.rows[part.where[number]] for part in parts])
            models[runs[number]] = combine_carefully(matrices[number], rows)
