"""Inner products of messages, exact enough to tell models apart near consensus.

Distances between inputs follow from inner products by subtraction. Where the inputs agree to many
digits that cancels, so one of the inputs, the reference, is subtracted from all of them first. The
reference is an input rather than the mean because one huge input would drag the mean away from all
the others.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bezoar._workspace import workspace
from bezoar.aggregators import pairwise
from bezoar.exchange._tuning import DEFAULT, Map, Tuning

#: Coordinates looked at to choose a reference.
SAMPLE = 64

#: Two inputs are too close for the products they were found with if their squared distance is below
#: this share of the squared distance to the reference.
TOO_CLOSE = {torch.float32: 1e-3, torch.float64: 1e-8}

#: Coordinates of float32 messages that are multiplied in float32 and then added up in float64.
NARROW_COLUMNS = 2048


def inner_products(values: Tensor, tuning: Tuning = DEFAULT) -> Tensor:
    """Inner products of each neighbourhood's inputs about a reference of their own.

    They are computed in the inputs' type. Where inputs lie too close to each other for that, they
    are computed again, in float64 and about the most central input.

    Args:
        values: ``[n, m, D]``.
        tuning: how many coordinates are taken at a time.

    Returns:
        ``[n, m, m]`` float64; rows and columns of inputs that are not finite are not finite.
    """
    reference = central_input(values)
    products = _by_neighbourhood(values, reference, values.dtype, tuning)
    finite = torch.isfinite(products.diagonal(dim1=-2, dim2=-1))
    if not bool(finite.all()):
        # The reference itself may be at fault: choose among the finite ones.
        finite = torch.isfinite(values).all(-1)
        reference = central_input(values.masked_fill(~finite.unsqueeze(-1), torch.nan))
        products = _by_neighbourhood(values, reference, values.dtype, tuning)
    again = too_close(products, values.dtype).any(-1)
    if bool(again.any()):
        central = _most_central(products[again])
        products[again] = _by_neighbourhood(values[again], central, torch.float64, tuning)
    return products


def network_products(rows: Sequence[Tensor], map: Map, tuning: Tuning = DEFAULT) -> Tensor:
    """Inner products of all messages of each run about one reference a run.

    Neighbourhoods far from that reference need one of their own: see :func:`too_close`.

    Args:
        rows: ``[n, D]`` for each run.
        map: what goes through the pieces of work.
        tuning: how the work is cut up.

    Returns:
        ``[runs, n, n]`` float64; rows and columns of inputs that are not finite are not finite.
    """
    inputs, length = rows[0].shape
    dtype = product_type(rows[0], tuning)
    width = min(length, max(64, tuning.block_bytes // (dtype.itemsize * inputs)))
    width = min(width, tuning.columns if length <= tuning.long else 4 * tuning.columns)
    some = max(1, tuning.block_bytes // (dtype.itemsize * inputs * width))
    pieces = [
        (slice(first, first + some), span)
        for span in tuning.spans(length)
        for first in range(0, len(rows), some)
    ]

    def products_about(reference: Tensor) -> Tensor:
        def add_up(piece: tuple[slice, slice]) -> Tensor:
            runs, span = piece
            part = [each[:, span] for each in rows[runs]]
            return _add_up(part, reference[runs], dtype, width)

        total = rows[0].new_zeros(len(rows), inputs, inputs, dtype=torch.float64)
        for (runs, _), sums in zip(pieces, map(add_up, pieces), strict=True):
            total[runs] += sums
        return total

    sample = torch.stack([_sample(each) for each in rows])
    reference = _central(sample)
    products = products_about(reference)
    if not bool(torch.isfinite(products.diagonal(dim1=-2, dim2=-1)).all()):
        finite = torch.stack([torch.isfinite(each).all(-1) for each in rows])
        reference = _central(sample.masked_fill(~finite.unsqueeze(-1), torch.nan))
        products = products_about(reference)
    return products


def product_type(messages: Tensor, tuning: Tuning) -> torch.dtype:
    """In which type whole messages are multiplied.

    Over long messages errors of float32 products average out, and float64 takes twice as long.
    """
    return torch.float64 if messages.shape[-1] <= tuning.long else messages.dtype


def too_close(products: Tensor, dtype: torch.dtype) -> Tensor:
    """``[..., n]`` whether an input has another so near that products in ``dtype`` blur it.

    ``g_ii + g_jj − 2 g_ij`` is wrong by the rounding of ``g_ii``, the squared distance to the
    reference. That matters where the squared distance of two inputs is not much more.
    """
    distances = pairwise(products).nan_to_num_(nan=torch.inf)
    distances.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    return distances.amin(-1) < TOO_CLOSE[dtype] * products.diagonal(dim1=-2, dim2=-1)


def central_input(values: Tensor) -> Tensor:
    """``[...]`` which input of ``[..., m, D]`` lies most in the middle, by a sample of coordinates.

    It is the one nearest to the inputs' median.
    """
    return _central(_sample(values))


def _sample(values: Tensor) -> Tensor:
    stride = max(1, values.shape[-1] // SAMPLE)
    return values[..., ::stride][..., :SAMPLE].to(torch.float64)


def _central(sample: Tensor) -> Tensor:
    known = sample.isfinite()
    ordered = sample.masked_fill(~known, torch.nan).sort(-2).values  # NaN comes last
    middle = (known.sum(-2, keepdim=True) - 1).clamp_(min=0) // 2
    median = ordered.gather(-2, middle)
    apart = (sample - median).abs_().amax(-1)
    return apart.nan_to_num_(nan=torch.inf).argmin(-1)


def _most_central(products: Tensor) -> Tensor:
    """``[...]`` the input with the smallest sum of squared distances to its nearer half."""
    distances = pairwise(products).nan_to_num_(nan=torch.inf).sort(-1).values
    half = 1 + distances.shape[-1] // 2
    return distances[..., :half].sum(-1).argmin(-1)


def _by_neighbourhood(
    values: Tensor, reference: Tensor, dtype: torch.dtype, tuning: Tuning
) -> Tensor:
    """``[n, m, m]`` of ``[n, m, D]``, in blocks that stay in the cache."""
    count, inputs, length = values.shape
    # How many coordinates are added up at a time depends on the inputs alone, so that a
    # neighbourhood's products do not depend on the others beside it.
    most = NARROW_COLUMNS if dtype == torch.float32 else tuning.columns
    width = min(length, most, max(64, tuning.block_bytes // (dtype.itemsize * inputs)))
    some = max(1, tuning.block_bytes // (dtype.itemsize * inputs * width))
    parts = [slice(first, first + some) for first in range(0, count, some)]
    sums = torch.cat([_add_up(values[part], reference[part], dtype, width) for part in parts])
    # Two inputs are as far from each other either way, to the last bit: some rules compare that.
    return (sums + sums.mT).mul_(0.5)


def _add_up(
    values: Tensor | Sequence[Tensor], reference: Tensor, dtype: torch.dtype, width: int
) -> Tensor:
    """``[n, m, m]`` the products of ``[n, m, D]``, or of so many ``[m, D]``.

    Args:
        values: the inputs.
        reference: ``[n]`` which of them is subtracted.
        dtype: in which type to subtract and multiply. Differences of float32 numbers are exact in
            float64.
        width: how many coordinates to take at a time; their sums are added up in float64.
    """
    count, (inputs, length), device = len(values), values[0].shape, reference.device
    numbers = torch.arange(count, device=device)
    sums = torch.zeros(count, inputs, inputs, dtype=torch.float64, device=device)
    held = workspace("differences", (count, inputs, width), dtype, device)
    for start in range(0, length, width):
        columns = slice(start, min(start + width, length))
        block = held[..., : columns.stop - start]
        if isinstance(values, Tensor) and values.dtype == dtype:
            part = values[..., columns]
            torch.sub(part, part[numbers, reference].unsqueeze(-2), out=block)
        else:
            for into, rows in zip(block, values, strict=True):
                into.copy_(rows[:, columns])
            block.sub_(block[numbers, reference].unsqueeze(-2))
        if dtype == torch.float64:
            sums.baddbmm_(block, block.mT)
        else:
            sums += block @ block.mT
    return sums
