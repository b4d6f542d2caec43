"""What agents make of their inputs by weights: neighbourhoods gathered from messages."""

import torch
from torch import Tensor

from bezoar._scratch import scratch
from bezoar.aggregators._base import WeightedAggregator
from bezoar.aggregators._gram import SAMPLE, central_input, gram
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._seats import Seats


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
    stride = max(1, head.shape[-1] * head.shape[-2] // SAMPLE)
    sample = head[..., ::stride].flatten(-2).masked_fill(gone.unsqueeze(-1), torch.nan)
    reference = central_input(sample).unsqueeze(-3)
    middle = rows.gather(-2, reference.expand(*rows.shape[:-2], 1, rows.shape[-1]))
    rows -= middle
    centred = rows @ rows.mT
    # (r + a)ᵀ (r + b) = aᵀb + rᵀa + rᵀb + rᵀr
    along = rows @ middle.mT
    return centred + along + along.mT + middle @ middle.mT, centred


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
    runs, agents, length = messages.shape
    # Fresh memory for every piece would cost as much as filling it.
    shape = (runs * index.numel(), length)
    values = scratch("inputs", shape, messages.dtype, messages.device)
    rows = (index + agents * torch.arange(runs, device=index.device)[:, None, None]).flatten()
    torch.index_select(messages.reshape(-1, length), 0, rows, out=values)
    values = values.view(runs, *index.shape, length)
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
    models = scratch("models", (runs, len(index), 1, length), messages.dtype, messages.device)
    torch.matmul(row, values, out=models)
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
