"""What an agent makes of its inputs: neighbourhoods gathered from messages, and combined."""

import torch
from torch import Tensor

from bezoar._scratch import scratch
from bezoar.aggregators._base import CoordinateAggregator, WeightedAggregator
from bezoar.aggregators._gram import SAMPLE, central_input, gram
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._ranks import sort_ends
from bezoar.aggregators._seats import Seats

#: Bytes of gathered messages sorted at a time: they stay in the cache, and work on them takes long
#: enough for threads not to wait for each other.
RANK_BYTES = 8 << 20

#: Sums over neighbourhoods are a matrix product where the network is at most so many times larger.
SUMMED = 4

#: The share of an extreme that a result must reach for the extreme to be subtracted from a sum.
CANCELS = 1e-7


def neighbourhood(seats: Seats, finite: Tensor, **products: Tensor) -> Neighbourhood:
    if "gram" in products:
        both = finite.unsqueeze(-1) & finite.unsqueeze(-2)
        products["gram"] = products["gram"].masked_fill_(~both, 0)
    return Neighbourhood(
        mask=seats.mask,
        finite=finite,
        mixing=seats.mixing,
        estimate=seats.estimate,
        largest_estimate=seats.largest_estimate,
        index=seats.index,
        **products,
    )


def head_products(head: Tensor, finite: Tensor) -> tuple[Tensor, Tensor]:
    """Each class's inner products ``[..., classes, n, n]``, and the same about a reference."""
    by_class = head.transpose(-2, -3)
    rows = torch.empty(by_class.shape, dtype=torch.float64, device=head.device).copy_(by_class)
    gone = ~finite
    if bool(gone.any()):
        rows.masked_fill_(gone[..., None, :, None], 0)
    raw = rows @ rows.mT
    stride = max(1, head.shape[-1] * head.shape[-2] // SAMPLE)
    sample = head[..., ::stride].flatten(-2).masked_fill(gone.unsqueeze(-1), torch.nan)
    reference = central_input(sample).unsqueeze(-3)
    rows -= rows.gather(-2, reference.expand(*rows.shape[:-2], 1, rows.shape[-1]))
    return raw, rows @ rows.mT


def combine_gathered(
    rule: WeightedAggregator,
    messages: Tensor,
    head: Tensor | None,
    seats: Seats,
    share: bool,
    out: Tensor,
) -> Tensor | None:
    """Weigh the inputs gathered at some seats.

    Args:
        rule: says how to weigh them.
        messages: ``[runs, W, D]``.
        head: ``[runs, W, classes, features]``, for rules that read it.
        seats: whose inputs.
        share: whether to tell the share of weight given to poisoned inputs.
        out: ``[runs, seats, D]`` where to write the models.
    """
    [index] = seats.index
    values = messages[:, index]
    if rule.reads == "gram":
        products = {"gram": gram(values)}
        finite = torch.isfinite(products["gram"].diagonal(dim1=-2, dim2=-1))
    else:
        finite = torch.isfinite(values.sum(-1))
        products = {}
        if rule.reads == "head":
            assert head is not None
            raw, centred = head_products(head[:, index], finite)
            products = {"head": raw, "head_centred": centred}
    weights = rule.weights(neighbourhood(seats, finite & seats.mask, **products))
    weights = weights.expand(len(messages), -1, -1)
    row = weights.to(messages.dtype).unsqueeze(-2)
    models = row @ values
    if not torch.isfinite(models.sum()):
        models = combine_carefully(row, values)
    out.copy_(models.squeeze(-2))
    return (weights * seats.poisoned).sum(-1) if share else None


def combine_carefully(weights: Tensor, values: Tensor) -> Tensor:
    """``weights [..., r, n] @ values [..., n, D]`` where zero times infinity is zero.

    An agent that does give weight to a message that is not finite gets NaN.
    """
    bad = ~torch.isfinite(values).all(-1)
    models = weights @ values.masked_fill(bad.unsqueeze(-1), 0)
    reached = (weights * bad.unsqueeze(-2)).sum(-1) != 0
    return models.masked_fill_(reached.unsqueeze(-1), torch.nan)


def combine_ranks(
    rule: CoordinateAggregator, messages: Tensor, seats: Seats, share: bool, out: Tensor
) -> Tensor | None:
    """Sort each coordinate of the inputs and average by rank. NaN counts as plus infinity.

    Args:
        rule: says how to weigh ranks.
        messages: ``[runs, W, D]``.
        seats: whose inputs.
        share: whether to tell the share of weight given to poisoned inputs.
        out: ``[runs, seats, D]`` where to write the models.
    """
    [index], [mask], [poisoned] = seats.index, seats.mask, seats.poisoned
    slots, seated, (runs, agents, length) = seats.slots, len(index), messages.shape
    ranks = rule.rank_weights(mask.sum(-1), seats.estimate[0], slots)
    low = high = slots
    outermost = rule.outermost(seats.largest_estimate)
    if outermost is not None:
        low, high = outermost, outermost + slots - seats.fewest
    # Slots come first, so that a slot's values of all runs and seats lie together.
    flat = messages.reshape(-1, length)
    offsets = agents * torch.arange(runs, device=index.device)[:, None]
    rows = (index.T.unsqueeze(1) + offsets).flatten()
    padded = (~mask.T).unsqueeze(1).expand(slots, runs, seated)
    padding = padded.flatten().nonzero().squeeze(-1)
    # Without padding, one value dropped at either end is the largest and the smallest.
    drops = links = None
    if outermost == 1 and seats.fewest == slots and messages.dtype == torch.float32 and not share:
        drops = (ranks[:, :1] == 0).to(torch.float64)
        if agents <= SUMMED * slots:
            links = drops.new_zeros(seated, agents).scatter_(1, index, 1).expand(runs, -1, -1)
    given = messages.new_zeros(runs, seated, dtype=torch.float64)
    width = max(256, RANK_BYTES // (runs * seated * slots * messages.element_size()))
    for start in range(0, length, width):
        block, part = flat[:, start : start + width], out[..., start : start + width]
        shape = (len(rows), block.shape[-1])
        values = scratch("gathered", shape, messages.dtype, messages.device)
        torch.index_select(block, 0, rows, out=values)
        if drops is not None:
            here = values.view(slots, *part.shape)
            total = _totals(here, messages[..., start : start + width], links)
            if _drop_extremes(here, total, drops, part):
                continue
        if not torch.isfinite(values.sum()):
            values.nan_to_num_(torch.inf, torch.inf, -torch.inf)
        values = values.index_fill_(0, padding, torch.inf).view(slots, *part.shape)
        ordered = sort_ends(list(values.clone() if share else values), low, high)
        _average_ranks(ordered, ranks, part)
        if share:
            kept = _kept(values, ordered, ranks) & ~padded.unsqueeze(-1)
            poison = (kept & poisoned.T[:, None, :, None]).sum(0) / kept.sum(0)
            given += poison.sum(-1, dtype=torch.float64)
    return given / length if share else None


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
    is harmless while the extremes are within ten million times the mean size of the result;
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
    # Seat by seat, for a seat that keeps large values must not vouch for one that drops them.
    outer = torch.maximum(largest.amax(-1), -smallest.amin(-1))
    size = total.abs_().mean(-1)
    harmless = (CANCELS * outer <= size) | ((drops.squeeze(-1) == 0) & size.isfinite())
    return bool(harmless.all())


def _average_ranks(ordered: list[Tensor], ranks: Tensor, out: Tensor) -> None:
    """``Σ_r ranks[:, r] · ordered[r]`` over ``[runs, seats, D]``, ranks without weight left out."""
    out.zero_()
    used = (ranks > 0).sum(0).tolist()
    weights = ranks.to(out.dtype).unsqueeze(-1)
    for rank, values in enumerate(ordered):
        weight = weights[:, rank]
        if used[rank] == len(ranks):
            out.addcmul_(values, weight)
        elif used[rank]:  # zero times infinity must not count
            out += (values * weight).masked_fill_(weight == 0, 0)


def _kept(values: Tensor, ordered: list[Tensor], ranks: Tensor) -> Tensor:
    """``[slots, runs, seats, D]`` whether the value lies between the outermost that have weight."""
    by_rank = torch.stack(ordered)
    unused = ranks.T[:, None, :, None] == 0
    lowest = by_rank.masked_fill(unused, torch.inf).amin(0)
    highest = by_rank.masked_fill(unused, -torch.inf).amax(0)
    return (values >= lowest) & (values <= highest)
