"""What agents make of their inputs by weights: neighbourhoods gathered from messages."""

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._scratch import scratch
from bezoar.aggregators._base import Aggregator, WeightedAggregator
from bezoar.aggregators._gram import gram
from bezoar.aggregators._heads import Heads, gather_heads
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._seats import Seats


def neighbourhood(
    seats: Seats, finite: Tensor, gram: Tensor | None = None, heads: Heads | None = None
) -> Neighbourhood:
    """What the agents at some seats have; ``gram`` is written over."""
    if gram is not None:
        both = finite.unsqueeze(-1) & finite.unsqueeze(-2)
        gram = gram.masked_fill_(~both, 0)
    return Neighbourhood(
        mask=seats.mask,
        finite=finite,
        mixing=seats.mixing,
        estimate=seats.estimate,
        largest_estimate=seats.largest_estimate,
        index=seats.index,
        gram=gram,
        heads=heads,
    )


def head_of(rule: Aggregator, messages: Tensor) -> Tensor:
    """``[..., classes, features]`` the output layers at the start of messages ``[..., D]``.

    Raises:
        BezoarError: where the rule does not say their shape, or the messages are shorter.
    """
    shape = rule.head_shape()
    if shape is None:
        raise BezoarError(
            f"aggregator {rule.name}: give head=(classes, features), the shape of the output "
            "layer at the start of a message"
        )
    classes, features = shape
    if classes * features > messages.shape[-1]:
        raise BezoarError(
            f"head: {classes} × {features} is longer than a message of {messages.shape[-1]}"
        )
    head = messages[..., : classes * features]
    return head.reshape(*head.shape[:-1], classes, features)


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
        head: ``[runs, W, classes, features]``, for rules that read it; by default where the rule
            says that it is.
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
    products = heads = None
    if rule.reads == "gram":
        products = gram(values)
        finite = torch.isfinite(products.diagonal(dim1=-2, dim2=-1))
    else:
        finite = torch.isfinite(values.sum(-1))
        if rule.reads == "head":
            if head is None:
                head = head_of(rule, messages)
            heads = gather_heads(head, index, finite)
    weights = rule.weights(neighbourhood(seats, finite & seats.mask, products, heads))
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
