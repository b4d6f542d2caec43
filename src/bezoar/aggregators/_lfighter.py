"""LFighter: cluster the output layers, keep the cluster whose members differ more."""

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar._questions import answered_at_once, some
from bezoar.aggregators._neighbourhood import (
    TIE,
    Head,
    Neighbourhood,
    cosines,
    normalised,
    pairwise,
)
from bezoar.aggregators._rule import WeightedAggregator

#: Neighbourhoods up to this size are split in two by trying every split.
ENUMERATED = 12

#: Larger ones are split from several starts: around each of this many inputs, the nearest of all
#: inputs, in these parts.
CENTRES, PARTS = 32, (1 / 4, 1 / 2, 3 / 4)

#: From a start all inputs are assigned anew this often; then they move one by one, up to this many
#: times.
LLOYD_STEPS, MOVES = 8, 200

#: Moves that are made where asking whether all are done would make the host wait.
MOVES_UNASKED = 24


@dataclass(frozen=True)
class LFighter(WeightedAggregator):
    """`LFighter <https://doi.org/10.1016/j.neunet.2023.11.019>`_ at every agent.

    The two classes whose rows of the output layer have the largest norms, summed over the inputs,
    are looked at; an input's feature is these two rows. The features are split by 2-means: the best
    split of all for up to 12 inputs, for more the best one found from many starts, none of them
    random. The mean over the cluster whose members are less alike is returned: poisoned updates
    resemble each other. Inputs that are not finite are left out; with nothing finite the output is
    NaN.

    Args:
        head: ``(classes, features)``: the output layer is the first ``classes × features`` block
            of a message, one row a class. In training the model knows it.
        on: ``"models"``: the output layers of the messages themselves, as in the paper. Or
            ``"updates"``, as in the original: those of ``x_w − y_v``, with ``x_w`` the agent's
            model before its local update; a class's norm is then its row's plus the size of its
            bias, where the model tells where that is. Where ``x_w`` is not finite the output is
            NaN.
    """

    head: Head | None = None
    on: Literal["models", "updates"] = "models"

    name: ClassVar[str] = "lfighter"
    label: ClassVar[str] = "LFighter"
    colour: ClassVar[str] = "#999933"
    marker: ClassVar[str] = "<"
    withstands: ClassVar[tuple[str, ...]] = ("labels", "non_finite")
    breakdown: ClassVar[float] = 0.0
    majority_dominant: ClassVar[bool] = False
    reads: ClassVar[str] = "output_layer"

    def remembers(self) -> tuple[str, ...]:
        return ("model_before_step",) if self.on == "updates" else ()

    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        layers = neighbourhood.output_layers
        assert layers is not None
        finite, inputs = neighbourhood.finite & neighbourhood.mask, neighbourhood.mask.shape[-1]
        if self.on == "models":
            norms = layers.norms()
        else:
            inputs = neighbourhood.remembered["model_before_step"]
            finite = finite & neighbourhood.finite[..., inputs : inputs + 1]
            norms = layers.changes(inputs)
        classes = _two_largest((norms * finite.unsqueeze(-2)).sum(-1))
        raw, centred = layers.products(classes)
        if self.on == "updates":  # (y − x)ᵀ(z − x) = yᵀz − yᵀx − xᵀz + xᵀx
            along = centred[..., inputs : inputs + 1]
            raw = centred - along - along.mT + along[..., inputs : inputs + 1, :]
        mask, finite = neighbourhood.mask[..., :inputs], finite[..., :inputs]
        index = neighbourhood.index[..., :inputs]
        seen = replace(neighbourhood, mask=mask, finite=finite, index=index)
        present = finite.unsqueeze(-1) & finite.unsqueeze(-2)
        distances = pairwise(centred)[..., :inputs, :inputs].masked_fill_(~present, 0)
        first = _two_means(seen, distances)
        kept = _less_similar(seen, raw[..., :inputs, :inputs], first)
        nothing = ~finite.any(-1, keepdim=True)
        weights = normalised((kept | (mask & nothing)).to(torch.float64))
        return pad(weights, (0, neighbourhood.finite.shape[-1] - inputs))


def _two_largest(total_norms: Tensor) -> Tensor:
    """``[..., 2]`` the two classes with the largest sums, of ties the lower class."""
    first = _first_largest(total_norms)
    second = _first_largest(total_norms.scatter(-1, first, -1.0))
    return torch.cat([first, second], dim=-1)


def _first_largest(scores: Tensor) -> Tensor:
    best = scores.amax(-1, keepdim=True)
    return (scores >= best - best.abs() * TIE).to(torch.uint8).argmax(-1, keepdim=True)


def _two_means(neighbourhood: Neighbourhood, distances: Tensor) -> Tensor:
    """``[..., m]`` the members of one cluster; nobody outside it where features do not differ."""
    finite = neighbourhood.finite
    if distances.shape[-1] <= ENUMERATED:
        first = _best_split(finite, distances)
    else:
        first = _best_found(neighbourhood, distances)
        # An agent with few inputs gets the best split, however many others have.
        narrow = distances[..., :ENUMERATED, :ENUMERATED]
        best = _best_split(finite[..., :ENUMERATED], narrow)
        few = (neighbourhood.size <= ENUMERATED).unsqueeze(-1)
        first[..., :ENUMERATED] = torch.where(few, best, first[..., :ENUMERATED])
    differ = (distances.amax((-1, -2)) > 0).unsqueeze(-1)
    return (first | ~differ) & finite


def _best_split(present: Tensor, distances: Tensor) -> Tensor:
    """Of all splits the one with the smallest sum of squared distances to the means.

    A cluster's sum is its pairwise squared distances, each pair once, over its size.
    """
    splits, members, upper, pairs = _splits(distances.shape[-1], distances.device)
    inside = distances.flatten(-2).index_select(-1, upper) @ pairs
    size = present.to(torch.float64) @ members
    sums = inside.div_(size).masked_fill_(size == 0, torch.inf)
    cost = sums.unflatten(-1, (2, -1)).sum(-2)
    best = cost.amin(-1, keepdim=True)
    chosen = (cost <= best * (1 + TIE)).to(torch.uint8).argmax(-1)
    return splits[chosen]


@cache
def _splits(inputs: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Every split in two, slot 0 always in the first part.

    Returns:
        The first parts ``[splits, inputs]``, as a mask; the members ``[inputs, 2 · splits]`` of
        the first and then of the second parts, one or zero; the places ``[pairs]`` in
        ``[inputs · inputs]`` where each pair is once; and ``[pairs, 2 · splits]`` one where both
        of a pair are in the part.
    """
    codes = torch.arange(2 ** (inputs - 1), device=device) << 1
    splits = (codes.unsqueeze(-1) >> torch.arange(inputs, device=device)) & 1 == 0
    members = torch.cat([splits, ~splits]).T.to(torch.float64)
    first, second = torch.triu_indices(inputs, inputs, 1, device=device)
    return splits, members, first * inputs + second, members[first] * members[second]


def _best_found(neighbourhood: Neighbourhood, distances: Tensor) -> Tensor:
    """``[..., m]`` of the splits found from every start the one with the smallest sum."""
    finite = neighbourhood.finite
    present = finite.unsqueeze(-2)
    ranks = neighbourhood.ranks(distances.masked_fill(~present, torch.inf))[..., :CENTRES, :]
    count = finite.sum(-1)[..., None, None]
    found = []
    for part in PARTS:
        size = torch.minimum((part * count).round().clamp(min=1), count - 1)
        found.append(_descended(distances, (ranks < size) & present, present))
    first, cost = zip(*found, strict=True)
    splits, costs = torch.cat(first, dim=-2), torch.cat(cost, dim=-1)
    least = costs.amin(-1, keepdim=True)
    best = (costs <= least * (1 + TIE)).to(torch.uint8).argmax(-1)[..., None, None]
    return splits.gather(-2, best.expand(*best.shape[:-1], splits.shape[-1])).squeeze(-2)


def _descended(distances: Tensor, first: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """Splits from which no single input can move without making them worse.

    Args:
        distances: ``[..., m, m]`` squared distances, zero where something is not present.
        first: ``[..., s, m]`` the first clusters of ``s`` splits to begin with.
        present: ``[..., 1, m]`` what is split.

    Returns:
        ``[..., s, m]`` the first clusters, and ``[..., s]`` the sums of squared distances to the
        means.
    """
    for _ in range(LLOYD_STEPS):
        (to_first, _), (to_second, _) = _to_means(distances, first, present)
        new = (to_first <= to_second) & present
        both = new.any(-1, keepdim=True) & (new != present).any(-1, keepdim=True)
        first = torch.where(both, new, first)
    moving = torch.ones_like(first[..., :1])
    for _ in range(MOVES if answered_at_once() else MOVES_UNASKED):
        (to_first, size), (to_second, rest) = _to_means(distances, first, present)
        # Without an input its cluster's sum falls by d² n/(n − 1); with it the other's rises by
        # d² n/(n + 1).
        alone = torch.where(first, size == 1, rest == 1)
        falls = torch.where(first, to_first * (size / (size - 1)), to_second * (rest / (rest - 1)))
        falls = falls.masked_fill_(alone | ~present, 0)
        rises = torch.where(first, to_second * (rest / (rest + 1)), to_first * (size / (size + 1)))
        gains = (falls - rises).masked_fill_(~present, -torch.inf)
        gain, which = gains.max(-1, keepdim=True)
        moving = gain > TIE * falls.amax(-1, keepdim=True)
        if answered_at_once() and not bool(moving.any()):
            break
        first = first ^ torch.zeros_like(first).scatter_(-1, which, moving)
    if not answered_at_once():
        some(moving)  # the rest of the moves may be needed
    (to_first, _), (to_second, _) = _to_means(distances, first, present)
    cost = (torch.where(first, to_first, to_second) * present).sum(-1)
    return first, cost


def _to_means(
    distances: Tensor, first: Tensor, present: Tensor
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Of both clusters ``[..., s, m]`` squared distances to the mean, and ``[..., s, 1]`` sizes."""
    found = []
    for members in (first, present & ~first):
        size = members.sum(-1, keepdim=True).to(torch.float64)
        share = members / size.clamp(min=1)
        average = share @ distances
        found.append((average - (average * share).sum(-1, keepdim=True) / 2, size))
    return found[0], found[1]


def _less_similar(neighbourhood: Neighbourhood, raw: Tensor, first: Tensor) -> Tensor:
    """``[..., m]`` the cluster kept: the larger value, on a tie the one of the lowest agent."""
    finite = neighbourhood.finite
    second = finite & ~first
    value_first, value_second = _values(neighbourhood, raw, torch.stack([first, second]))
    lowest = (neighbourhood.lowest_index(finite) & first).any(-1)
    margin = TIE * (value_first.abs() + value_second.abs())
    keeps_first = torch.where(
        lowest, value_first >= value_second - margin, value_first > value_second + margin
    )
    alone = ~second.any(-1)
    return torch.where((keeps_first | alone).unsqueeze(-1), first, second)


def _values(neighbourhood: Neighbourhood, raw: Tensor, members: Tensor) -> Tensor:
    """``[clusters, ...]`` each one's share of the inputs times how little alike its members are."""
    cosine = cosines(raw)
    cosine.diagonal(dim1=-2, dim2=-1).zero_()
    inside = members.unsqueeze(-1) & members.unsqueeze(-2)
    least = cosine.masked_fill(~inside, torch.inf).amin(-1).masked_fill_(~members, 0)
    size = members.sum(-1).to(torch.float64)
    mean = least.sum(-1) / size.clamp(min=1)
    return size / neighbourhood.size * (1 - mean)
