"""Inner products of messages, exact enough to tell models apart near consensus.

Distances between inputs follow from inner products by subtraction. Where the inputs agree to many
digits that cancels, so one of the inputs, the reference, is subtracted from all of them first. The
reference is an input rather than the mean because one huge input would drag the mean away from all
the others.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from bezoar._products import linear
from bezoar._questions import some
from bezoar._workspace import workspace
from bezoar.aggregators import pairwise
from bezoar.exchange._gathered import GatheredInputs
from bezoar.exchange._tuning import DEFAULT, Map, Tuning, side_by_side

#: Coordinates looked at to choose a reference.
SAMPLE = 32

#: Two inputs are too close for the products they were found with if their squared distance is below
#: this share of the squared distance to the reference.
TOO_CLOSE = {torch.float32: 1e-3, torch.float64: 1e-11}

#: Where no squared distance to the reference reaches this, products are rounded to what is least in
#: their type, perhaps to zero. Nothing better is known for float64.
TOO_SMALL = {torch.float32: 1e-31, torch.float64: 0.0}

#: Coordinates of float32 messages that are multiplied in float32 and then added up in float64.
NARROW_COLUMNS = 2048

#: Columns are multiplied in multiples of this many, so that every row begins at 64 bytes. On some
#: processors a product's last bits depend on where in memory its rows begin.
ALIGNED = 16

#: Products of a few rows in float64 are fastest with multiples of this many rows. Rows of zeros are
#: added if that makes at most a quarter more of them.
FAST_ROWS = 12


def inner_products(inputs: GatheredInputs, tuning: Tuning = DEFAULT) -> Tensor:
    """Inner products of each neighbourhood's inputs about a reference of their own.

    They are computed in the inputs' type and about the first input, the agent's own. Where inputs
    lie too close to each other for that, they are computed again, in float64 and about the most
    central input.

    Args:
        inputs: ``[n, m, D]``.
        tuning: how many coordinates are taken at a time.

    Returns:
        ``[n, m, m]`` float64; rows and columns of inputs that are not finite are not finite.
    """
    dtype = inputs.dtype if inputs.dtype in TOO_CLOSE else torch.float32
    products = _by_neighbourhood(inputs, None, dtype, tuning)
    if some(~torch.isfinite(products.diagonal(dim1=-2, dim2=-1))):
        # The reference itself may be at fault: choose among the finite ones.
        values = inputs.columns(slice(None))
        finite = torch.isfinite(values).all(-1, keepdim=True)
        sample = values[..., _sampled(inputs.shape[-1])].masked_fill(~finite, torch.nan)
        products = _by_neighbourhood(inputs, _central(sample), dtype, tuning)
    again = too_close(products, dtype).any(-1)
    if some(again):
        closer = inputs.some(again)
        reference = _most_central(products[again])
        products[again] = _by_neighbourhood(closer, reference, torch.float64, tuning)
    return products


class Part(NamedTuple):
    """Rows of several runs that lie together in memory.

    Attributes:
        rows: ``[places, n, D]`` the rows.
        where: the place of each run.
    """

    rows: Tensor
    where: Sequence[int]


def network_products(parts: Sequence[Part], map: Map, tuning: Tuning = DEFAULT) -> Tensor:
    """Inner products of all rows of each run about one reference a run.

    Neighbourhoods far from that reference need one of their own: see :func:`too_close`.

    Args:
        parts: the rows of each run are those of all parts, one part after the other.
        map: what goes through the pieces of work.
        tuning: how the work is cut up.

    Returns:
        ``[runs, n, n]`` float64; rows and columns of inputs that are not finite are not finite.
    """
    first, length = parts[0].rows, parts[0].rows.shape[-1]
    sizes = [part.rows.shape[1] for part in parts]
    count, dtype = sum(sizes), product_type(first, tuning)
    most = tuning.columns if length <= tuning.long else 4 * tuning.columns
    width = min(length, most, max(64, tuning.block_bytes // (dtype.itemsize * count)))
    # Runs of short messages: long operations can be shared between threads, short ones cannot.
    together = max(1, 4 * tuning.block_bytes // (dtype.itemsize * count * width))
    places = side_by_side(together, *(part.where for part in parts))
    pieces = list(product(places, tuning.spans(length)))
    height = fast_rows(count) if dtype == torch.float64 else count

    def products_about(reference: Tensor) -> Tensor:
        def add_up(piece: tuple[list[int], slice]) -> Tensor:
            runs, span = piece
            own = reference[runs]
            here = [part.rows[part.where[runs[0]] :][: len(runs)] for part in parts]
            about = _row(own, [rows[..., span] for rows in here]).unsqueeze(1)

            def differences(columns: slice) -> Tensor:
                used = columns.stop - columns.start
                shape = (len(runs), height, used + -used % ALIGNED)
                block = workspace("differences", shape, dtype, first.device)
                block[:, count:] = 0
                block[..., used:] = 0
                into = block[:, :count, :used]
                center = about[..., columns.start - span.start :][..., :used]
                for rows, to in zip(here, into.split(sizes, dim=1), strict=True):
                    values = rows[..., columns]
                    if values.dtype == dtype:
                        torch.sub(values, center, out=to)
                    else:
                        to.copy_(values).sub_(center.to(dtype))
                return block

            multiply = _one_by_one if length > tuning.long else _together
            return _add_up(differences, span, width, multiply)[:, :count, :count]

        total = sample.new_zeros(len(sample), count, count, dtype=torch.float64)
        for (runs, _), sums in zip(pieces, map(add_up, pieces), strict=True):
            total[runs] += sums
        return total

    sample = torch.cat([part.rows[..., _sampled(length)][part.where] for part in parts], dim=1)
    products = products_about(_central(sample))
    if some(~torch.isfinite(products.diagonal(dim1=-2, dim2=-1))):
        finite = torch.cat(
            [
                torch.stack([torch.isfinite(part.rows[place]).all(-1) for place in part.where])
                for part in parts
            ],
            dim=1,
        )
        products = products_about(_central(sample.masked_fill(~finite.unsqueeze(-1), torch.nan)))
    return products


def _row(number: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """``[runs, width]`` one row of each run, by its number among those of all parts.

    Args:
        number: ``[runs]`` the row's number.
        parts: ``[runs, n, width]`` each.
    """
    runs = torch.arange(len(number), device=number.device)
    found, start = parts[0][:, 0], 0
    for values in parts:  # the last one that begins at or before the number has the row
        row = values[runs, (number - start).clamp(0, values.shape[1] - 1)]
        found = torch.where((number < start).unsqueeze(-1), found, row)
        start += values.shape[1]
    return found


def fast_rows(count: int) -> int:
    """With how many rows in float64, zeros among them, a product of so many is fastest."""
    more = -count % FAST_ROWS
    return count + more if 4 * more <= count else count


def product_type(messages: Tensor, tuning: Tuning) -> torch.dtype:
    """In which type all messages of a network are multiplied.

    Over long messages errors of float32 products average out, and float64 takes twice as long.
    """
    if messages.shape[-1] <= tuning.long or messages.dtype == torch.float64:
        return torch.float64
    return torch.float32


def too_close(products: Tensor, dtype: torch.dtype, present: Tensor | None = None) -> Tensor:
    """``[..., n]`` whether an input has another so near that products in ``dtype`` blur it.

    ``g_ii + g_jj − 2 g_ij`` is wrong by the rounding of ``g_ii``, the squared distance to the
    reference. That matters where the squared distance of two inputs is not much more, and where
    all squared distances are too small for ``dtype``.

    Args:
        products: ``[..., n, n]`` inner products about the reference.
        dtype: in which type they were computed.
        present: ``[..., n]`` where there is an input; by default everywhere.
    """
    distances = pairwise(products).nan_to_num_(nan=torch.inf)
    distances.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    if present is not None:
        distances.masked_fill_(~(present.unsqueeze(-1) & present.unsqueeze(-2)), torch.inf)
    to_reference = products.diagonal(dim1=-2, dim2=-1)
    small = to_reference.amax(-1, keepdim=True) < TOO_SMALL[dtype]
    return small | (distances.amin(-1) < TOO_CLOSE[dtype] * to_reference)


def _sampled(length: int) -> slice:
    """The columns by which a reference is chosen."""
    stride = max(1, length // SAMPLE)
    return slice(0, stride * min(SAMPLE, length), stride)


def _central(sample: Tensor) -> Tensor:
    """``[...]`` which input of ``[..., m, columns]`` is nearest to the inputs' median."""
    sample = sample.to(torch.float64)
    known = sample.isfinite()
    ordered = sample.masked_fill(~known, torch.nan).sort(-2).values  # NaN comes last
    middle = (known.sum(-2, keepdim=True) - 1).clamp_(min=0) // 2
    median = ordered.gather(-2, middle)
    apart = (sample - median).abs_().amax(-1)
    return apart.nan_to_num_(nan=torch.inf).argmin(-1)


def _most_central(products: Tensor) -> Tensor:
    """``[...]`` the input with the smallest sum of squared distances to the nearer half of all.

    No minority can draw it away from the others, however close together it is itself.
    """
    distances = pairwise(products).nan_to_num_(nan=torch.inf).sort(-1).values
    half = 1 + distances.shape[-1] // 2
    return distances[..., :half].sum(-1).argmin(-1)


def _by_neighbourhood(
    inputs: GatheredInputs, reference: Tensor | None, dtype: torch.dtype, tuning: Tuning
) -> Tensor:
    """``[n, m, m]`` of ``[n, m, D]``, in blocks that stay in the cache.

    Args:
        inputs: the inputs.
        reference: ``[n]`` which of them is subtracted; by default the first.
        dtype: in which type to subtract and multiply. Differences of float32 numbers are exact in
            float64.
        tuning: how many coordinates are taken at a time.
    """
    count, slots, length = inputs.shape
    # How many coordinates are added up at a time depends on the inputs alone, so that a
    # neighbourhood's products do not depend on the others beside it.
    most = NARROW_COLUMNS if dtype == torch.float32 else tuning.columns
    width = min(length, most, max(64, tuning.block_bytes // (dtype.itemsize * slots)))
    together = max(1, 2 * tuning.block_bytes // (dtype.itemsize * slots * width))
    parts = []
    for first in range(0, count, together):
        places = slice(first, first + together)
        about = None if reference is None else reference[places]

        def differences(
            columns: slice, places: slice = places, about: Tensor | None = about
        ) -> Tensor:
            block = inputs.columns(columns, places).to(dtype)
            if about is None:
                return block.sub_(block[:, :1].clone())
            numbers = torch.arange(len(block), device=block.device)
            return block.sub_(block[numbers, about].unsqueeze(1))

        parts.append(_add_up(differences, slice(0, length), width))
    products = torch.cat(parts)
    # Two inputs are as far from each other either way, to the last bit: some rules compare that.
    return (products + products.mT).mul_(0.5)


def _together(rows: Tensor) -> Tensor:
    """``[n, m, m]`` products of rows ``[n, m, width]``, however many matrices there are."""
    return rows @ rows.mT


def _one_by_one(rows: Tensor) -> Tensor:
    """The same, faster for long rows; in float32 last bits differ."""
    return torch.stack([linear(each, each) for each in rows])


def _add_up(
    differences: Callable[[slice], Tensor],
    span: slice,
    width: int,
    multiply: Callable[[Tensor], Tensor] = _together,
) -> Tensor:
    """``[n, m, m]`` products of differences ``[n, m, width]``, over so many columns at a time."""
    sums: Tensor | None = None
    for start in range(span.start, span.stop, width):
        block = differences(slice(start, min(start + width, span.stop)))
        if block.shape[-1] % ALIGNED:
            block = pad(block, (0, -block.shape[-1] % ALIGNED))
        products = multiply(block).to(torch.float64)
        sums = products if sums is None else sums.add_(products)
    assert sums is not None
    return sums
