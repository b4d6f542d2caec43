"""Rules that make each coordinate of a model of the same coordinate of the inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._questions import some
from bezoar._workspace import workspace
from bezoar.aggregators import CoordinateAggregator, Neighbourhood, RankAggregator, mixed
from bezoar.exchange._gathered import GatheredExchange, Piece
from bezoar.exchange._inner_products import inner_products
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._selecting import Selection, selected_sums
from bezoar.exchange._sent import Sent
from bezoar.exchange._sorting import NETWORK_INPUTS, comparisons, sort_ends
from bezoar.exchange._table import Table, TableProducts, at_slots
from bezoar.exchange._trimming import MOST_AGENTS, Program, trimmed_sums
from bezoar.exchange._tuning import Map

#: Rows of trimming programs are so many times as long as what is multiplied at a time: threads that
#: ask for short operations wait for each other.
LONG_ROWS = 8

#: Calling an operation takes as long as applying it to so many numbers.
CALL = 8192

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
        program: how to add up what is kept with common parts computed once, where that pays.
    """

    group: int
    span: slice
    used: int
    ends: int
    program: Program | Selection | None


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
        dense: whether agents share so many inputs that common parts are worth looking for.
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
        self._programs: list[Program | Selection | None] = [None] * len(self.parts)
        if self.dense and not rule.before and isinstance(rule, RankAggregator):
            self._programs = [self._program(rule, part) for part in self.parts]

    def _program(self, rule: RankAggregator, part: Neighbourhoods) -> Program | Selection | None:
        """How to compute all neighbourhoods at once, if they have much in common."""
        sets = part.index[0, :, self._first :].tolist()
        dropped = rule.outermost(part.largest_estimate)
        if dropped is None:
            ranks = rule.ranks(part.slots, part.largest_estimate)
            kept = [rank for rank, weight in enumerate(ranks) if weight]
            middle = range(kept[0], kept[-1] + 1)
            alike = {ranks[rank] for rank in middle} == {ranks[kept[0]]}
            if self._first or not alike or self.agents > NETWORK_INPUTS:
                return None
            return selected_sums(sets, self.agents, middle)
        if self.agents > MOST_AGENTS or part.slots - self._first <= max(1, 2 * dropped):
            return None
        return trimmed_sums(sets, self.agents, dropped)

    def _pieces(self, sent: Sent) -> Iterator[_Sorted]:
        held, group = min(sent.messages.shape[-1], self.tuning.columns), count()
        for part, program in zip(self.parts, self._programs, strict=True):
            used = part.slots
            for step in self.rule.before:
                used = step.inputs_after(self.rule, used)
            used = self.rule.values_used(used, part.largest_estimate)
            ends = self.rule.outermost(part.largest_estimate)
            ends = used if ends is None else ends
            most = self.tuning.piece_bytes // (held * sent.messages.element_size() * part.slots)
            if sent.false is not None or (program and not _pays(program, part, ends, held)):
                program = None
            if program is not None:
                most = part.agents
            for piece in self._cut_up(part, most):
                for run in [[run] for run in piece.runs] if program else [piece.runs]:
                    this = (run, piece.here, self.agents, next(group))
                    for span in self._spans(sent.messages.shape[-1]):
                        yield _Sorted(*this, span, used, ends, program)

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
            if piece.program is not None:
                self._together(piece, piece.program, sent, models)
                if not tell:
                    return None
            chosen = known.get(piece.group)
            if self._chooses and chosen is None:
                chosen = self._choose(piece, sent)
            return self._sort(piece, chosen, sent, None if piece.program else models, tell)

        return work

    def _sum_type(self, sent: Sent) -> torch.dtype:
        """In which type values are added up."""
        short = sent.messages.shape[-1] <= self.tuning.exact_sums
        return torch.float64 if short else sent.messages.dtype

    def _together(
        self, piece: _Sorted, program: Program | Selection, sent: Sent, models: Tensor
    ) -> None:
        """Compute the models of all agents of a run by a program."""
        [run], agents = piece.runs, piece.here.on_host[0, :, 0]
        messages, out = sent.messages[run][:, piece.span], models[run][:, piece.span]
        width = min(LONG_ROWS * self.tuning.columns, messages.shape[-1])
        assert isinstance(self.rule, RankAggregator)
        ranks = self.rule.ranks(piece.used, piece.here.largest_estimate)
        shape, kept = (program.working, width), sum(weight > 0 for weight in ranks)
        memory = workspace("together", shape, self._sum_type(sent), messages.device)
        for start in range(0, messages.shape[-1], width):
            block, into = messages[:, start : start + width], out[:, start : start + width]
            if some(~torch.isfinite(block.sum())):
                block = block.nan_to_num(torch.inf, torch.inf, -torch.inf)
            block = block.to(memory.dtype)
            sums = program.run(list(block), list(memory[:, : block.shape[-1]]))
            for agent, total in zip(agents, sums, strict=True):
                if self._first:
                    total = total + block[agent]  # a sum may be that of several agents
                torch.div(total, kept, out=into[agent])

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
        width = BLOCKS * self.tuning.block_bytes // (used * places * inputs.dtype.itemsize)
        width = max(256, width)
        for start in range(piece.span.start, piece.span.stop, width):
            columns = slice(start, min(start + width, piece.span.stop))
            values = inputs.columns(columns)
            if matrix is not None:
                values = _combined(values, matrix)
            elif rows is not None:
                values = values.flatten(0, 1)[rows.flatten()].view(used, places, -1)
            if some(~torch.isfinite(values.sum())):
                values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
            copies = list(values.clone() if tell else values)
            ordered = copies
            if self.rule.sorts:
                own, others = copies[: self._first], copies[self._first :]
                ordered = own + sort_ends(others, piece.ends)
            if models is not None:
                how = (estimate, self._sum_type(sent), sent.iteration)
                made = self.rule.combine(ordered, *how).to(models.dtype)
                models.flatten(0, 1)[:, columns].index_copy_(0, piece.rows[:, 0], made)
            if tell:
                given += _kept(values, self.rule.extent(ordered, estimate), self._first)
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


def _pays(program: Program | Selection, part: Neighbourhoods, ends: int, length: int) -> bool:
    """Whether a program takes less time than sorting all neighbourhoods side by side.

    Sorting takes fewer operations, each on all neighbourhoods: two for each of two values that are
    compared, one for each that is gathered or kept.
    """
    apart = 2 * len(comparisons(part.slots, ends)) + 2 * part.slots - 2 * ends
    return program.cost * (CALL + length) < apart * (CALL + part.agents * length)


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
