"""Rules that sort each coordinate of the inputs and average by rank."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._questions import some
from bezoar._workspace import workspace
from bezoar.aggregators import CoordinateAggregator
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._sent import Sent
from bezoar.exchange._sorting import sort_ends
from bezoar.exchange._sparse import Gathered
from bezoar.exchange._trimming import MOST_AGENTS, Program, trimmed_sums
from bezoar.exchange._tuning import Map, Tuning

#: Rows of trimming programs are so many times as long as what is multiplied at a time: threads that
#: ask for short operations wait for each other.
LONG_ROWS = 8

#: Calling an operation takes as long as applying it to so many numbers.
CALL = 8192

#: Inputs sorted at a time fill so many blocks of the cache.
BLOCKS = 2


@dataclass(frozen=True)
class _Piece:
    """A piece of work.

    Attributes:
        gathered: some agents in some runs, with as many inputs and the same estimate.
        span: some coordinates.
        ranks: ``[m]`` the weight of each rank there.
        ends: how many ranks at either end need sorting.
        program: how to trim with common parts computed once, where that pays.
    """

    gathered: Gathered
    span: slice
    ranks: Sequence[float]
    ends: int
    program: Program | None


class CoordinateExchange:
    """A rule by coordinates on one network, in some runs.

    Args:
        runs: ``[r]`` the numbers of the runs.
        rule: the rule.
        agents: the number of agents in the network.
        parts: their inputs, those with as many and the same estimate together.
        dense: whether agents share so many inputs that common parts are worth looking for.
        tuning: how the work is cut up.
    """

    def __init__(
        self,
        runs: Tensor,
        rule: CoordinateAggregator,
        agents: int,
        parts: Sequence[Neighbourhoods],
        dense: bool,
        tuning: Tuning,
    ) -> None:
        if rule.remembers():
            raise BezoarError(
                f"aggregator {rule.name}: rules by coordinates cannot remember models, found "
                f"{', '.join(rule.remembers())}"
            )
        self._runs, self._rule, self._agents, self._parts = runs, rule, agents, parts
        self._tuning = tuning
        self._kept: dict[object, list[_Piece]] = {}
        self._programs = [self._program(part) if dense else None for part in parts]

    def _program(self, part: Neighbourhoods) -> Program | None:
        """How to trim all neighbourhoods at once, if they are trimmed and have much in common."""
        dropped = self._rule.outermost(part.largest_estimate)
        first = int(self._rule.keeps_own())
        if not dropped or self._agents > MOST_AGENTS or part.slots - first <= 2 * dropped:
            return None
        return trimmed_sums(part.index[0, :, first:].tolist(), self._agents, dropped)

    def __call__(self, sent: Sent, models: Tensor, shares: Tensor | None, map: Map) -> None:
        """Write the next models; NaN counts as plus infinity.

        If it is asked for, write each agent's average share of weight given to poison.
        """
        kind = (sent.messages.shape, sent.messages.dtype, sent.false is None)
        if kind not in self._kept:  # the pieces are the same for messages of the same kind
            self._kept = {kind: list(self._pieces(sent))}
        pieces = self._kept[kind]
        found = map(lambda piece: self._work(piece, sent, models, shares is not None), pieces)
        for piece, share in zip(pieces, found, strict=True):
            if shares is not None and share is not None:
                own = piece.gathered.rows()[..., 0].flatten()
                shares.view(-1).index_add_(0, own, share)

    def _pieces(self, sent: Sent) -> Iterator[_Piece]:
        """Runs, agents and coordinates whose inputs fit into a piece of work."""
        length, bytes_each = sent.messages.shape[-1], sent.messages.element_size()
        spans = self._tuning.spans(length)
        held = min(length, self._tuning.columns)
        for part, found in zip(self._parts, self._programs, strict=True):
            ranks = self._rule.rank_weights(part.slots, part.estimate[0, 0]).tolist()
            ends = self._rule.outermost(part.largest_estimate)
            ends = part.slots if ends is None else ends
            shared = found
            if found is None or sent.false is not None or not _pays(found, part, ends, held):
                shared = None
            most = max(1, self._tuning.piece_bytes // (held * bytes_each * part.slots))
            if shared is not None:
                most = len(part.agents)
            for first in range(0, len(part.agents), most):
                here = part.some(first, min(first + most, len(part.agents)))
                together = 1 if shared else max(1, most // len(here.agents))
                for start in range(0, len(self._runs), together):
                    runs = self._runs[start : start + together]
                    gathered = Gathered(runs, here, self._agents)
                    for span in spans:
                        yield _Piece(gathered, span, ranks, ends, shared)

    def _work(self, piece: _Piece, sent: Sent, models: Tensor, share: bool) -> Tensor | None:
        if piece.program is not None:
            self._trim_together(piece, piece.program, sent, models)
        if piece.program is None or share:
            return self._sort(piece, sent, None if piece.program else models, share)
        return None

    def _sum_type(self, sent: Sent) -> torch.dtype:
        """In which type values are added up."""
        short = sent.messages.shape[-1] <= self._tuning.exact_sums
        return torch.float64 if short else sent.messages.dtype

    def _trim_together(self, piece: _Piece, program: Program, sent: Sent, models: Tensor) -> None:
        [run], agents = piece.gathered.on_host[:2]
        weight = max(piece.ranks)
        messages, out = sent.messages[run][:, piece.span], models[run][:, piece.span]
        width = LONG_ROWS * self._tuning.columns
        shape = (program.working, min(width, messages.shape[-1]))
        memory = workspace("trimming", shape, self._sum_type(sent), messages.device)
        for start in range(0, messages.shape[-1], width):
            block, into = messages[:, start : start + width], out[:, start : start + width]
            if some(~torch.isfinite(block.sum())):
                block = block.nan_to_num(torch.inf, torch.inf, -torch.inf)
            block = block.to(memory.dtype)
            sums = program.run(list(block), list(memory[:, : block.shape[-1]]))
            for agent, total in zip(agents, sums, strict=True):
                if self._rule.keeps_own():
                    total += block[agent]
                torch.mul(total, weight, out=into[agent])

    def _sort(self, piece: _Piece, sent: Sent, models: Tensor | None, share: bool) -> Tensor | None:
        """Sort each coordinate of the inputs and average by rank.

        Returns:
            ``[places]`` the share of poisoned inputs among those kept, if it is asked for.
        """
        gathered, here = piece.gathered, piece.gathered.here
        # Slots come first, so that a slot's values of all runs and agents lie together.
        rows = gathered.rows().flatten(0, 1).T.contiguous()
        slots, places = rows.shape
        own = rows[0]
        length = sent.messages.shape[-1]
        table = sent.messages.view(-1, length)[:, piece.span]
        out = None if models is None else models.view(-1, length)[:, piece.span]
        given = table.new_zeros(places, dtype=torch.float64)
        replaced = gathered.false_slots(sent.false)
        first = int(self._rule.keeps_own())
        width = BLOCKS * self._tuning.block_bytes // (rows.numel() * table.element_size())
        width = max(256, width)
        for start in range(0, table.shape[-1], width):
            block = table[:, start : start + width]
            columns = block.shape[-1]
            values = workspace("inputs", (rows.numel(), columns), table.dtype, table.device)
            torch.index_select(block, 0, rows.flatten(), out=values)
            values = values.view(slots, places, columns)
            if replaced is not None:
                assert sent.false is not None
                place, which = (torch.from_numpy(part).to(rows.device) for part in replaced)
                false = sent.false.values[which][:, piece.span][:, start : start + width]
                values[place % slots, place // slots] = false
            if some(~torch.isfinite(values.sum())):
                values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
            copies = values.clone() if share else values
            ordered = [*copies[:first], *sort_ends(list(copies[first:]), piece.ends, piece.ends)]
            if out is not None:
                average = _average(ordered, piece.ranks, self._sum_type(sent))
                out[:, start : start + columns].index_copy_(0, own, average.to(out.dtype))
            if share:
                poisoned = here.poisoned[0].T.repeat(1, len(gathered.runs))
                given += _poison_share(values, ordered, piece.ranks, poisoned, first)
        return given / length if share else None


def _pays(program: Program, part: Neighbourhoods, ends: int, length: int) -> bool:
    """Whether a program takes less time than sorting all neighbourhoods side by side.

    Sorting takes fewer operations, each on all neighbourhoods: two for each of two values that are
    compared, one for each that is gathered or kept.
    """
    compared = 2 * ends * part.slots - ends * (2 * ends + 1)
    apart = 2 * compared + 2 * part.slots - 2 * ends
    sorting = apart * (CALL + len(part.agents) * length)
    return len(program.operations) * (CALL + length) < sorting


def _average(ordered: Sequence[Tensor], ranks: Sequence[float], dtype: torch.dtype) -> Tensor:
    """``Σ_r ranks[r] · ordered[r]`` in ``dtype``, ranks without weight left out."""
    used = [(values, weight) for values, weight in zip(ordered, ranks, strict=True) if weight]
    values, weight = used[0]
    average = workspace("average", tuple(values.shape), dtype, values.device).copy_(values)
    if all(other == weight for _, other in used):
        for values, _ in used[1:]:
            average += values
        return average.mul_(weight)
    average *= weight
    for values, weight in used[1:]:
        average.add_(values, alpha=weight)
    return average


def _poison_share(
    values: Tensor,
    ordered: Sequence[Tensor],
    ranks: Sequence[float],
    poisoned: Tensor,
    first: int,
) -> Tensor:
    """``[places]`` the share of poisoned inputs among those kept, summed over coordinates.

    An input is kept in a coordinate where it lies between the outermost values that have weight. So
    is the own one where only the others, from slot ``first``, are sorted.
    """
    used = [v for v, weight in zip(ordered[first:], ranks[first:], strict=True) if weight]
    kept = torch.zeros_like(values, dtype=torch.bool)
    kept[:first] = True
    if used:
        within = torch.stack(used)
        kept[first:] = (values[first:] >= within.amin(0)) & (values[first:] <= within.amax(0))
    share: Tensor = (kept & poisoned.unsqueeze(-1)).sum(0) / kept.sum(0)
    return share.sum(-1, dtype=torch.float64)
