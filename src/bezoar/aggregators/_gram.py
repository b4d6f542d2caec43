"""Inner products of messages, exact enough to tell models apart near consensus."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from bezoar._scratch import scratch

#: Like the builtin ``map``, perhaps over several threads.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

#: Bytes of copies held at a time; a block of them stays in the cache.
BLOCK_BYTES = 2 << 20

#: Coordinates summed at a time; of long messages more, for they make many blocks.
COLUMNS = 8192
LONG_COLUMNS = 32768

#: Coordinates of long messages that are one piece of work; pieces are added up in order, so that
#: results do not depend on who does them.
SPAN = 1 << 18

#: Coordinates looked at to choose a reference.
SAMPLE = 64

#: A reference is replaced if the inputs' squared distances are this share of those to it.
STRAY = 1e-4


def gram(values: Tensor, map: Map = map) -> Tensor:
    """Inner products about a common reference, in float64.

    Distances between inputs follow from inner products by subtraction. Where the inputs agree to
    many digits that cancels, so one of the inputs is subtracted from all of them first; in
    float64, where the difference of two float32 numbers is exact (but messages beyond
    :data:`SPAN` are multiplied in their own type, and added up in float64). The reference
    is an input rather than the mean because one huge input would drag the mean away from all
    the others.

    Args:
        values: ``[..., n, D]``.
        map: what goes through the pieces of long messages.

    Returns:
        ``[..., n, n]`` float64; rows and columns of inputs that are not finite are not finite.
    """
    reference = central_input(values)
    products = _products(values, reference, map)
    if not bool(torch.isfinite(products.diagonal(dim1=-2, dim2=-1)).all()):
        # The reference itself may be at fault: choose among the finite ones.
        finite = torch.isfinite(values).all(-1)
        reference = central_input(values.masked_fill(~finite.unsqueeze(-1), torch.nan))
        products = _products(values, reference, map)
    stray = _is_stray(products)
    if bool(stray.any()):
        reference = torch.where(stray, _most_central(products), reference)
        products = _products(values, reference, map)
    return products


def spans(length: int) -> list[slice]:
    """The pieces of messages of this length."""
    return [slice(start, start + SPAN) for start in range(0, length, SPAN)]


def _products(values: Tensor, reference: Tensor, map: Map) -> Tensor:
    *batch, inputs, length = values.shape
    rows = values.reshape(-1, inputs, length)
    reference = reference.flatten()

    # Over long messages errors of float32 products average out, and float64 takes twice as long.
    exact_type = torch.float64 if length <= SPAN else values.dtype
    # What is summed at a time depends on the inputs alone, so that a run's result does not depend
    # on the others beside it.
    most = COLUMNS if length <= SPAN else LONG_COLUMNS
    width = min(length, most, max(64, BLOCK_BYTES // (exact_type.itemsize * inputs)))
    some = max(1, BLOCK_BYTES // (exact_type.itemsize * inputs * width))
    numbers = torch.arange(some, device=values.device)

    def add_up(piece: tuple[int, slice]) -> Tensor:
        first, span = piece
        part, centre = rows[first : first + some, :, span], reference[first : first + some]
        held = scratch("gram", (some, inputs, width), exact_type, values.device)
        sums = torch.zeros(len(part), inputs, inputs, dtype=torch.float64, device=values.device)
        for start in range(0, part.shape[-1], width):
            block = part[..., start : start + width]
            exact = held[: len(block), :, : block.shape[-1]]
            middle = block[numbers[: len(block)], centre].unsqueeze(-2)
            if values.dtype == exact_type:
                torch.sub(block, middle, out=exact)
            else:
                exact.copy_(block).sub_(middle.to(exact_type))
            if exact_type == torch.float64:
                sums.baddbmm_(exact, exact.mT)
            else:
                sums += exact @ exact.mT
        return sums

    total = torch.zeros(len(rows), inputs, inputs, dtype=torch.float64, device=values.device)
    pieces = [(first, span) for span in spans(length) for first in range(0, len(rows), some)]
    for (first, _), sums in zip(pieces, map(add_up, pieces), strict=True):
        total[first : first + some] += sums
    return total.view(*batch, inputs, inputs)


def _is_stray(products: Tensor) -> Tensor:
    """``[..., 1, 1]`` whether the reference is far from all inputs, beside how near these are."""
    inputs = products.shape[-1]
    to_reference = products.diagonal(dim1=-2, dim2=-1).sum(-1)
    to_each_other = inputs * to_reference - products.sum((-1, -2))  # every pair once
    # Pairs with the reference, which is an input, are among them.
    stray = (to_each_other <= (1 + STRAY) * to_reference) & (to_reference > 0) & (inputs > 2)
    return stray[..., None, None]


def _most_central(products: Tensor) -> Tensor:
    """``[..., 1, 1]`` the input with the smallest sum of squared distances to the others."""
    lengths = products.diagonal(dim1=-2, dim2=-1)
    sums = products.shape[-1] * lengths - 2 * products.sum(-1)
    return sums.argmin(-1)[..., None, None]


def central_input(values: Tensor) -> Tensor:
    """``[..., 1, 1]`` which input lies most in the middle, judged by a sample of coordinates.

    It is the one nearest to the inputs' median. A poor choice costs digits: half of them where it
    is ten thousand times farther away than the others are from each other.
    """
    stride = max(1, values.shape[-1] // SAMPLE)
    sample = values[..., ::stride][..., :SAMPLE].to(torch.float64)
    known = sample.isfinite()
    ordered = sample.masked_fill_(~known, torch.nan).sort(-2).values  # NaN comes last
    middle = (known.sum(-2, keepdim=True) - 1).clamp_(min=0) // 2
    median = ordered.gather(-2, middle)
    apart = (sample - median).abs_().amax(-1)
    return apart.nan_to_num_(nan=torch.inf).argmin(-1)[..., None, None]
