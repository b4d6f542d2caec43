"""Rules that make each coordinate of a model of the same coordinate of the inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._questions import some
from bezoar.aggregators import CoordinateAggregator, Neighbourhood, mixed
from bezoar.exchange._compiled import Kernel
from bezoar.exchange._gathered import GatheredExchange, GatheredInputs, Piece, addresses
from bezoar.exchange._inner_products import inner_products
from bezoar.exchange._links import Tell
from bezoar.exchange._sent import Sent
from bezoar.exchange._sorting import sort_ends
from bezoar.exchange._table import Table, TableProducts, at_slots
from bezoar.exchange._tuning import Map

#: Inputs sorted at a time fill so many blocks of the cache.
BLOCKS = 2


@dataclass(frozen=True)
class _Sorted(Piece):
    """A piece of work on some coordinates.

    Attributes:
        group: the number of these agents in these runs; pieces with other coordinates share it.
        span: the coordinates.
        used: how many inputs of an agent are used.
        ends: how many values at either end need sorting.
        kernel: what computes the models, if the rule is compiled.
    """

    group: int
    span: slice
    used: int
    ends: int
    kernel: Kernel | None


@dataclass(frozen=True)
class _Chosen:
    """What is sorted where not simply all inputs are: combinations of them, or some of them.

    Attributes:
        matrix: ``[places, m', m]`` the weights of the inputs in the combinations, if they are.
        slots: ``[places, m']`` the inputs, if they are some.
    """

    matrix: Tensor | None
    slots: Tensor | None


@dataclass(eq=False)
class CoordinateExchange(GatheredExchange):
    """A rule by coordinates on one network, in some runs. NaN counts as plus infinity.

    Attributes:
        dense: whether inner products are taken of the whole network at once, where they are asked
            for, and agents with the same inputs are looked for.
    """

    rule: CoordinateAggregator
    dense: bool

    def __post_init__(self) -> None:
        rule = self.rule
        if rule.remembers():
            raise BezoarError(
                f"aggregator {rule.name}: rules by coordinates cannot remember models, found "
                f"{', '.join(rule.remembers())}"
            )
        self._first = int(rule.keeps_own())
        self._chooses = bool(rule.before) or rule.reads == "gram"

    def _pieces(self, sent: Sent) -> Iterator[_Sorted]:
        messages, group = sent.messages, count()
        length = messages.shape[-1]
        held = min(length, self.tuning.columns)
        for part in self.parts:
            used = part.slots
            for step in self.rule.before:
                used = step.inputs_after(self.rule, used)
            used = self.rule.values_used(used, part.largest_estimate)
            ends = self.rule.outermost(part.largest_estimate)
            ends = used if ends is None else ends
            kernel = None
            if self.tuning.compiled and messages.device.type == "cpu":
                types = (messages.dtype, self._sum_type(sent))
                kernel = Kernel(self.rule, used, ends, part.largest_estimate, *types)
                kernel = kernel if kernel.can_compute(length) else None
            most = self.tuning.piece_bytes // (held * messages.element_size() * part.slots)
            for piece in self._cut_up(part, most):
                this = (piece.runs, piece.here, self.agents, next(group))
                for span in self._spans(length):
                    yield _Sorted(*this, span, used, ends, kernel)

    def _spans(self, length: int) -> Sequence[slice]:
        """The coordinates of a piece of work."""
        if self._chooses and not self.dense:  # every piece takes the inner products anew
            return [slice(0, length)]
        return self.tuning.spans(length)

    def _worker(
        self, pieces: Sequence[_Sorted], sent: Sent, models: Tensor, tell: bool, map: Map
    ) -> Callable[[_Sorted], Tensor | None]:
        known: Mapping[int, _Chosen] = {}
        if self._chooses and self.dense:
            known = self._choose_together({piece.group: piece for piece in pieces}, sent, map)

        def work(piece: _Sorted) -> Tensor | None:
            chosen = known.get(piece.group)
            if self._chooses and chosen is None:
                chosen = self._choose(piece, sent)
            if piece.kernel is None:
                return self._sort(piece, chosen, sent, models, tell)
            self._compute(piece, piece.kernel, chosen, sent, models)
            return self._sort(piece, chosen, sent, None, tell) if tell else None

        return work

    def measure(self, sent: Sent, distances: Tell, map: Map) -> None:
        """Tell how far the inputs are from the outputs: ``[runs, n, m]`` squared, piece by piece.

        The distances of all pieces with the same runs and neighbourhoods add up. They are not
        finite at inputs that are not. The rule must go by values alone.
        """

        def work(piece: _Sorted) -> Tensor:
            inputs, length = piece.inputs(sent), piece.span.stop - piece.span.start
            if piece.kernel is not None:
                here = inputs.addresses(piece.span.start)
                found = piece.kernel.squared_distances(here, length, sent.iteration)
                squared = torch.from_numpy(found)
            else:
                squared = self._distances(piece, inputs)
            return squared.view(len(piece.runs), -1, piece.here.slots)

        pieces = self._cut(sent)
        for piece, squared in zip(pieces, map(work, pieces), strict=True):
            distances(piece.runs, piece.here, squared)

    def _distances(self, piece: _Sorted, inputs: GatheredInputs) -> Tensor:
        """``[places, m]`` what :meth:`measure` tells, by operations on tensors."""
        inputs = inputs.slots_first()
        total = torch.zeros(inputs.rows.shape, dtype=torch.float64, device=inputs.rows.device)
        for columns in self._blocks(piece, inputs.dtype):
            values = _free_of_nan(inputs.columns(columns))
            made = self._made(self._ordered(list(values.clone()), piece), piece, inputs.sent)
            total += (values.to(torch.float64) - made.to(torch.float64)).square_().sum(-1)
        return total.T

    def _ordered(self, values: list[Tensor], piece: _Sorted) -> list[Tensor]:
        """The values as the rule combines them; they are written over."""
        if not self.rule.sorts:
            return values
        return values[: self._first] + sort_ends(values[self._first :], piece.ends)

    def _made(self, ordered: Sequence[Tensor], piece: _Sorted, sent: Sent) -> Tensor:
        """What the rule makes of the values."""
        iteration = torch.tensor(sent.iteration, dtype=torch.float64)
        estimate = piece.here.largest_estimate
        return self.rule.combine(ordered, estimate, self._sum_type(sent), iteration)

    def _sum_type(self, sent: Sent) -> torch.dtype:
        """In which type values are added up."""
        short = sent.messages.shape[-1] <= self.tuning.exact_sums
        return torch.float64 if short else sent.messages.dtype

    def _compute(
        self, piece: _Sorted, kernel: Kernel, chosen: _Chosen | None, sent: Sent, models: Tensor
    ) -> None:
        """Write the models by the compiled rule."""
        inputs, span = piece.inputs(sent), piece.span
        everyone, own = models.flatten(0, 1)[:, span], piece.rows[:, 0]
        out = addresses(everyone, own.numpy())
        if chosen is not None and chosen.matrix is not None:
            for columns in self._blocks(piece, models.dtype):
                values = _combined(inputs.slots_first().columns(columns), chosen.matrix)
                rows = np.arange(values.shape[0] * len(own)).reshape(values.shape[0], -1).T
                into = out + (columns.start - span.start) * models.element_size()
                here = addresses(values.flatten(0, 1), rows)
                kernel(here, into, values.shape[-1], sent.iteration)
            return
        here = inputs.addresses(span.start)
        if chosen is not None and chosen.slots is not None:
            here = np.take_along_axis(here, chosen.slots.numpy(), axis=1)
        computed = list(range(len(own)))
        if self.dense and self.rule.sorts and not self._first:  # equal inputs have equal outputs
            known: dict[bytes, int] = {}
            inputs_of = map(bytes, np.sort(here))
            computed = [known.setdefault(key, place) for place, key in enumerate(inputs_of)]
        once = sorted(set(computed))
        kernel(here[once], out[once], span.stop - span.start, sent.iteration)
        for place, same in enumerate(computed):
            if place != same:
                everyone[own[place]] = everyone[own[same]]

    def _blocks(self, piece: _Sorted, dtype: torch.dtype) -> Iterator[slice]:
        """The coordinates of a piece, so many at a time that its inputs stay in the cache."""
        size = piece.used * len(piece.rows) * dtype.itemsize
        width = BLOCKS * self.tuning.block_bytes // size
        width = max(256, width)
        for start in range(piece.span.start, piece.span.stop, width):
            yield slice(start, min(start + width, piece.span.stop))

    def _sort(
        self,
        piece: _Sorted,
        chosen: _Chosen | None,
        sent: Sent,
        models: Tensor | None,
        tell: bool,
    ) -> Tensor | None:
        """Sort each coordinate of the inputs and let the rule combine the values.

        Returns:
            ``[runs, n, m]`` the weight of each input, if it is asked for.
        """
        inputs, matrix, rows = piece.inputs(sent), None, None
        used, places, length = piece.used, len(piece.rows), inputs.shape[-1]
        if chosen is not None:
            matrix, slots = chosen.matrix, chosen.slots
            if slots is not None and inputs.false is None:
                inputs = replace(inputs, rows=inputs.rows.gather(1, slots))
            elif slots is not None:  # on the host nobody knows which of the false ones are chosen
                rows = slots.T * places + torch.arange(places, device=slots.device)
        # Slots come first, so that a slot's values of all runs and agents lie together.
        inputs, estimate = inputs.slots_first(), piece.here.largest_estimate
        given = torch.zeros(used, places, dtype=torch.float64, device=inputs.rows.device)
        for columns in self._blocks(piece, inputs.dtype):
            values = inputs.columns(columns)
            if matrix is not None:
                values = _combined(values, matrix)
            elif rows is not None:
                values = values.flatten(0, 1)[rows.flatten()].view(used, places, -1)
            values = _free_of_nan(values)
            ordered = self._ordered(list(values.clone() if tell else values), piece)
            if tell:
                given += _kept(values, self.rule.extent(ordered, estimate), self._first)
            if models is not None:
                made = self._made(ordered, piece, sent).to(models.dtype)
                models.flatten(0, 1)[:, columns].index_copy_(0, piece.rows[:, 0], made)
        if not tell:
            return None
        weights = given.T / length
        if matrix is not None:
            weights = (weights.unsqueeze(-2) @ matrix).squeeze(-2)
        elif chosen is not None and chosen.slots is not None:
            weights = weights.new_zeros(piece.rows.shape).scatter_(1, chosen.slots, weights)
        return weights.view(len(piece.runs), -1, piece.here.slots)

    def _choose(self, piece: _Sorted, sent: Sent) -> _Chosen:
        """What some agents sort, by the inner products of their inputs."""
        gram = inner_products(piece.inputs(sent), self.tuning).unflatten(0, (len(piece.runs), -1))
        finite = torch.isfinite(gram.diagonal(dim1=-2, dim2=-1))
        return self._chosen(piece, piece.here.seen(sent, finite, gram=gram))

    def _choose_together(
        self, groups: Mapping[int, _Sorted], sent: Sent, map: Map
    ) -> dict[int, _Chosen]:
        """What each group of agents sorts, by the inner products of all messages of the network."""
        tables: dict[tuple[int, ...], tuple[Table, TableProducts]] = {}
        found = {}
        for number, piece in groups.items():
            runs = tuple(piece.runs)
            if runs not in tables:
                table = Table(sent, piece.runs, ())
                tables[runs] = table, TableProducts(table, map, self.tuning)
            table, products = tables[runs]
            slots = table.slots(piece.here)
            finite = at_slots(products.finite, slots)
            gram = products.at(slots, finite)
            found[number] = self._chosen(piece, piece.here.seen(sent, finite, gram=gram))
        return found

    def _chosen(self, piece: _Sorted, seen: Neighbourhood) -> _Chosen:
        """What some agents sort, by what they have seen."""
        matrix = None
        if self.rule.before:
            matrix, seen = mixed(self.rule.before, self.rule, seen)
            matrix = matrix.flatten(0, 1)
        chosen = self.rule.choose(seen).flatten(0, -2).to(torch.uint8)
        slots = chosen.argsort(dim=-1, descending=True, stable=True)[:, : piece.used]
        if matrix is None:
            return _Chosen(None, slots)
        return _Chosen(matrix.gather(1, slots.unsqueeze(-1).expand(-1, -1, matrix.shape[-1])), None)


def _free_of_nan(values: Tensor) -> Tensor:
    """The values, which are written over, with plus infinity for NaN."""
    if some(~torch.isfinite(values.sum())):
        values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
    return values


def _combined(values: Tensor, matrix: Tensor) -> Tensor:
    """``[m', places, columns]`` combinations of ``[m, places, columns]``, in a fixed order.

    So an agent is computed just as it would be alone. Zero times infinity is zero.

    Args:
        values: the inputs.
        matrix: ``[places, m', m]`` the weights.
    """
    careful = some(~torch.isfinite(values.sum()))
    found = []
    for weights in matrix.to(values.dtype).unbind(1):
        total = torch.zeros_like(values[0])
        for each, weight in zip(values, weights.T.unsqueeze(-1), strict=True):
            total.addcmul_(each.masked_fill(weight == 0, 0) if careful else each, weight)
        found.append(total)
    return torch.stack(found)


def _kept(values: Tensor, extent: tuple[Tensor, Tensor], first: int) -> Tensor:
    """``[slots, places]`` the part of each input among those kept, summed over coordinates.

    An input is kept in a coordinate where it lies within the extent of what has weight. So is the
    own one where only the others, from slot ``first``, are sorted.
    """
    lowest, highest = extent
    kept = (values >= lowest) & (values <= highest)
    kept[:first] = True
    parts: Tensor = kept / kept.sum(0)
    return parts.sum(-1, dtype=torch.float64)
