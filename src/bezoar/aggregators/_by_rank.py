"""What agents make of their inputs by rank: each coordinate sorted and averaged."""

import torch
from torch import Tensor

from bezoar._scratch import scratch
from bezoar.aggregators._base import CoordinateAggregator
from bezoar.aggregators._ranks import sort_ends
from bezoar.aggregators._seats import Seats

#: Bytes of gathered messages sorted at a time: they stay in the cache, and work on them takes long
#: enough for threads not to wait for each other.
RANK_BYTES = 4 << 20

#: Sums over neighbourhoods are a matrix product where the network is at most so many times larger.
SUMMED = 4

#: The share of an extreme that a result must reach for the extreme to be subtracted from a sum.
CANCELS = 1e-8


class Ranking:
    """A rule that works coordinate by coordinate, at some seats.

    Args:
        rule: says how to weigh ranks.
        seats: whose inputs.
        runs: the number of runs.
        agents: the number of agents in the network.
    """

    def __init__(self, rule: CoordinateAggregator, seats: Seats, runs: int, agents: int) -> None:
        [index], [mask], [self._poisoned] = seats.index, seats.mask, seats.poisoned
        self._slots, self._seated, self._runs = seats.slots, len(index), runs
        self._ranks = rule.rank_weights(mask.sum(-1), seats.estimate[0], seats.slots)
        self._used = (self._ranks > 0).sum(0).tolist()
        self._low = self._high = seats.slots
        outermost = rule.outermost(seats.largest_estimate)
        if outermost is not None:
            self._low, self._high = outermost, outermost + seats.slots - seats.fewest
        # Slots come first, so that a slot's values of all runs and seats lie together.
        offsets = agents * torch.arange(runs, device=index.device)[:, None]
        self._rows = (index.T.unsqueeze(1) + offsets).flatten()
        self._padded = (~mask.T).unsqueeze(1).expand(seats.slots, runs, self._seated)
        self._padding = self._padded.flatten().nonzero().squeeze(-1)
        # Without padding, one value dropped at either end is the largest and the smallest.
        self._drops: Tensor | None = None
        self._links: Tensor | None = None
        if outermost == 1 and seats.fewest == seats.slots:
            self._drops = (self._ranks[:, :1] == 0).to(torch.float64)
            if agents <= SUMMED * seats.slots:
                links = self._drops.new_zeros(self._seated, agents).scatter_(1, index, 1)
                self._links = links.expand(runs, -1, -1)

    def combine(self, messages: Tensor, share: bool, out: Tensor) -> Tensor | None:
        """Sort each coordinate of the inputs and average. NaN counts as plus infinity.

        Args:
            messages: ``[runs, W, D]``.
            share: whether to tell the share of weight given to poisoned inputs.
            out: ``[runs, seats, D]`` where to write the models.
        """
        length = messages.shape[-1]
        flat = messages.reshape(-1, length)
        drops = self._drops if messages.dtype == torch.float32 else None
        given = messages.new_zeros(self._runs, self._seated, dtype=torch.float64)
        width = max(256, RANK_BYTES // (len(self._rows) * messages.element_size()))
        for start in range(0, length, width):
            block, part = flat[:, start : start + width], out[..., start : start + width]
            shape = (len(self._rows), block.shape[-1])
            values = scratch("gathered", shape, messages.dtype, messages.device)
            torch.index_select(block, 0, self._rows, out=values)
            combined = False
            if drops is not None:
                here = values.view(self._slots, *part.shape)
                total = _totals(here, messages[..., start : start + width], self._links)
                combined = _drop_extremes(here, total, drops, part)
            if combined and not share:
                continue
            finite = bool(torch.isfinite(values.sum()))
            if not finite:
                values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
            # The padding comes last; unless there are infinities, zero times it is zero.
            last = torch.finfo(values.dtype).max if finite else torch.inf
            values = values.index_fill_(0, self._padding, last)
            values = values.view(self._slots, *part.shape)
            ordered = sort_ends(list(values.clone() if share else values), self._low, self._high)
            if not combined:
                self._average(ordered, part, finite)
            if share:
                given += self._poison_share(values, ordered)
        return given / length if share else None

    def _average(self, ordered: list[Tensor], out: Tensor, finite: bool) -> None:
        """``Σ_r ranks[:, r] · ordered[r]`` over ``[runs, seats, D]``, unused ranks left out."""
        out.zero_()
        weights = self._ranks.to(out.dtype).unsqueeze(-1)
        for rank, values in enumerate(ordered):
            weight = weights[:, rank]
            if self._used[rank] == self._seated or (finite and self._used[rank]):
                out.addcmul_(values, weight)
            elif self._used[rank]:  # zero times infinity must not count
                out += (values * weight).masked_fill_(weight == 0, 0)

    def _poison_share(self, values: Tensor, ordered: list[Tensor]) -> Tensor:
        """``[runs, seats]`` the share of poisoned inputs among those kept, over coordinates."""
        kept = _kept(values, ordered, self._ranks) & ~self._padded.unsqueeze(-1)
        poison: Tensor = (kept & self._poisoned.T[:, None, :, None]).sum(0) / kept.sum(0)
        return poison.sum(-1, dtype=torch.float64)


def _totals(values: Tensor, messages: Tensor, links: Tensor | None) -> Tensor:
    """``[runs, seats, width]`` float64 sums of the inputs, in scratch memory.

    Args:
        values: ``[slots, runs, seats, width]`` the inputs.
        messages: ``[runs, W, width]`` where they come from.
        links: ``[runs, seats, W]`` one where the seat has the message; if that is not too large.
    """
    total = scratch("total", tuple(values.shape[1:]), torch.float64, values.device)
    if links is not None:
        exact = scratch("exact", tuple(messages.shape), torch.float64, values.device)
        return torch.bmm(links, exact.copy_(messages), out=total)
    total.copy_(values[0])
    for more in values[1:]:
        total += more
    return total


def _drop_extremes(values: Tensor, total: Tensor, drops: Tensor, out: Tensor) -> bool:
    """The mean without the largest and the smallest value, from their sum; or refuse.

    Subtracting from a sum cancels where what is subtracted outweighs what remains. In float64 that
    is harmless while the extremes are within a hundred million times the result; where one is
    beyond, the values must be sorted.

    Args:
        values: ``[slots, runs, seats, width]``, float32; refused if not finite.
        total: ``[runs, seats, width]`` float64, their sum; is written over.
        drops: ``[seats, 1]`` how many to drop at either end, one or zero.
        out: ``[runs, seats, width]`` where to write the means.
    """
    shape, device = tuple(values.shape[1:]), values.device
    exact = scratch("exact", shape, torch.float64, device)
    largest, smallest = (
        torch_extreme(values, 0, out=scratch(name, shape, values.dtype, device))
        for name, torch_extreme in (("largest", torch.amax), ("smallest", torch.amin))
    )
    for extreme in (largest, smallest):
        total.addcmul_(exact.copy_(extreme), drops, value=-1)
    total /= len(values) - 2 * drops
    out.copy_(total)
    outer = torch.maximum(largest, smallest.neg_(), out=largest)
    # Of extremes that are not dropped only infinity, which times zero is NaN, is in the way.
    outer *= (CANCELS * drops).to(outer.dtype)
    return bool(torch.abs(out, out=smallest).sub_(outer).amin() >= 0)


def _kept(values: Tensor, ordered: list[Tensor], ranks: Tensor) -> Tensor:
    """``[slots, runs, seats, D]`` whether the value lies between the outermost that have weight."""
    by_rank = torch.stack(ordered)
    unused = ranks.T[:, None, :, None] == 0
    lowest = by_rank.masked_fill(unused, torch.inf).amin(0)
    highest = by_rank.masked_fill(unused, -torch.inf).amax(0)
    return (values >= lowest) & (values <= highest)
