"""Rules that sort each coordinate of the inputs and average by rank."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._questions import some
from bezoar._workspace import workspace
from bezoar.aggregators import CoordinateAggregator, mixed
from bezoar.exchange._gathered import GatheredExchange, GatheredInputs, Piece
from bezoar.exchange._inner_products import inner_products
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._selecting import Selection, selected_sums
from bezoar.exchange._sent import Sent
from bezoar.exchange._sorting import NETWORK_INPUTS, comparisons, sort_ends
from bezoar.exchange._trimming import MOST_AGENTS, Program, trimmed_sums
from bezoar.exchange._tuning import Tuning

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
        span: the coordinates.
        ranks: ``[m]`` the weight of each rank.
        ends: how many values at either end need sorting.
        program: how to add up what is kept with common parts computed once, where that pays.
    """

    span: slice
    ranks: Sequence[float]
    ends: int
    program: Program | Selection | None


class CoordinateExchange(GatheredExchange):
    """A rule by coordinates on one network, in some runs. NaN counts as plus infinity.

    ``dense`` says whether agents share so many inputs that common parts are worth looking for.
    """

    def __init__(
        self,
        runs: Sequence[int],
        rule: CoordinateAggregator,
        agents: int,
        parts: Sequence[Neighbourhoods],
        dense: bool,
        tuning: Tuning,
    ) -> None:
        super().__init__(runs, rule, agents, parts, tuning)
        if self._remembered:
            raise BezoarError(
                f"aggregator {rule.name}: rules by coordinates cannot remember models, found "
                f"{', '.join(self._remembered)}"
            )
        self._rule, self._first = rule, int(rule.keeps_own())
        dense = dense and not rule.before
        self._programs = [self._program(part) if dense else None for part in parts]

    def _program(self, part: Neighbourhoods) -> Program | Selection | None:
        """How to compute all neighbourhoods at once, if they have much in common."""
        sets = part.index[0, :, self._first :].tolist()
        dropped = self._rule.outermost(part.largest_estimate)
        if dropped is None:
            ranks = self._rule.rank_weights(part.slots, part.estimate[0, 0]).tolist()
            kept = [rank for rank, weight in enumerate(ranks) if weight]
            middle = range(kept[0], kept[-1] + 1)
            alike = {ranks[rank] for rank in middle} == {ranks[kept[0]]}
            if self._first or not alike or self._agents > NETWORK_INPUTS:
                return None
            return selected_sums(sets, self._agents, middle)
        if not dropped or self._agents > MOST_AGENTS or part.slots - self._first <= 2 * dropped:
            return None
        return trimmed_sums(sets, self._agents, dropped)

    def _pieces(self, sent: Sent) -> Iterator[_Sorted]:
        held = min(sent.messages.shape[-1], self._tuning.columns)
        for part, program in zip(self._parts, self._programs, strict=True):
            slots = part.slots
            for step in self._rule.before:
                slots = step.inputs_after(self._rule, slots)
            ranks = self._rule.rank_weights(slots, part.estimate[0, 0]).tolist()
            ends = self._rule.outermost(part.largest_estimate)
            ends = slots if ends is None else ends
            most = self._tuning.piece_bytes // (held * sent.messages.element_size() * part.slots)
            if sent.false is not None or (program and not _pays(program, part, ends, held)):
                program = None
            if program is not None:
                most = part.agents
            for piece in self._cut_up(part, most):
                for run in [[run] for run in piece.runs] if program else [piece.runs]:
                    for span in self._tuning.spans(sent.messages.shape[-1]):
                        yield _Sorted(run, piece.here, self._agents, span, ranks, ends, program)

    def _worker(self, sent: Sent, models: Tensor, tell: bool) -> Callable[[_Sorted], Tensor | None]:
        def work(piece: _Sorted) -> Tensor | None:
            if piece.program is not None:
                self._together(piece, piece.program, sent, models)
            if piece.program is None or tell:
                return self._sort(piece, sent, None if piece.program else models, tell)
            return None

        return work

    def _sum_type(self, sent: Sent) -> torch.dtype:
        """In which type values are added up."""
        short = sent.messages.shape[-1] <= self._tuning.exact_sums
        return torch.float64 if short else sent.messages.dtype

    def _together(
        self, piece: _Sorted, program: Program | Selection, sent: Sent, models: Tensor
    ) -> None:
        """Compute the models of all agents of a run by a program."""
        [run], agents = piece.runs, piece.here.on_host[0, :, 0]
        messages, out = sent.messages[run][:, piece.span], models[run][:, piece.span]
        width = min(LONG_ROWS * self._tuning.columns, messages.shape[-1])
        shape, kept = (program.working, width), sum(weight > 0 for weight in piece.ranks)
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

    def _sort(self, piece: _Sorted, sent: Sent, models: Tensor | None, tell: bool) -> Tensor | None:
        """Sort each coordinate of the inputs and average by rank.

        Returns:
            ``[runs, n, m]`` the weight of each input, if it is asked for.
        """
        # Slots come first, so that a slot's values of all runs and agents lie together.
        inputs, matrix = piece.inputs(sent), None
        if self._rule.before:
            matrix = self._mix(piece, inputs)
        inputs = inputs.slots_first()
        slots, places, length = len(piece.ranks), len(piece.rows), inputs.shape[-1]
        given = torch.zeros(slots, places, dtype=torch.float64, device=inputs.rows.device)
        width = BLOCKS * self._tuning.block_bytes // (slots * places * inputs.dtype.itemsize)
        width = max(256, width)
        for start in range(piece.span.start, piece.span.stop, width):
            columns = slice(start, min(start + width, piece.span.stop))
            values = inputs.columns(columns)
            if matrix is not None:
                values = _combined(values, matrix)
            if some(~torch.isfinite(values.sum())):
                values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
            copies = list(values.clone() if tell else values)
            ordered = copies[: self._first]
            ordered += sort_ends(copies[self._first :], piece.ends)
            if models is not None:
                average = _average(ordered, piece.ranks, self._sum_type(sent)).to(models.dtype)
                models.flatten(0, 1)[:, columns].index_copy_(0, piece.rows[:, 0], average)
            if tell:
                given += _kept(values, ordered, piece.ranks, self._first)
        if not tell:
            return None
        given = given.T / length
        if matrix is not None:
            given = (given.unsqueeze(-2) @ matrix).squeeze(-2)
        return given.view(len(piece.runs), -1, piece.here.slots)

    def _mix(self, piece: _Sorted, inputs: GatheredInputs) -> Tensor:
        """``[places, m', m]`` the weights of the inputs in what is sorted."""
        gram = inner_products(inputs, self._tuning).unflatten(0, (len(piece.runs), -1))
        finite = torch.isfinite(gram.diagonal(dim1=-2, dim2=-1))
        when = (inputs.sent.iteration, inputs.sent.progress)
        seen = piece.here.seen(finite, (), gram, None, *when)
        matrix, _ = mixed(self._rule.before, self._rule, seen)
        return matrix.flatten(0, 1)[:, : len(piece.ranks)]


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


def _average(ordered: Sequence[Tensor], ranks: Sequence[float], dtype: torch.dtype) -> Tensor:
    """``Σ_r ranks[r] · ordered[r]`` in ``dtype``, ranks without weight left out.

    In a wider type than the values' sums are exact, and so are means but for one rounding.
    """
    used = [(values, weight) for values, weight in zip(ordered, ranks, strict=True) if weight]
    values, weight = used[0]
    average = workspace("average", tuple(values.shape), dtype, values.device).copy_(values)
    if dtype != values.dtype and all(other == weight for _, other in used):
        for values, _ in used[1:]:
            average += values
        return average.div_(len(used))
    if weight != 1:
        average *= weight
    for values, weight in used[1:]:
        average.add_(values, alpha=weight)
    return average


def _kept(values: Tensor, ordered: Sequence[Tensor], ranks: Sequence[float], first: int) -> Tensor:
    """``[slots, places]`` the part of each input among those kept, summed over coordinates.

    An input is kept in a coordinate where it lies between the outermost values that have weight. So
    is the own one where only the others, from slot ``first``, are sorted.
    """
    used = [v for v, weight in zip(ordered[first:], ranks[first:], strict=True) if weight]
    kept = torch.zeros_like(values, dtype=torch.bool)
    kept[:first] = True
    if used:
        within = torch.stack(used)
        kept[first:] = (values[first:] >= within.amin(0)) & (values[first:] <= within.amax(0))
    parts: Tensor = kept / kept.sum(0)
    return parts.sum(-1, dtype=torch.float64)
