"""Inner products of messages, exact enough to tell models apart near consensus."""

import torch
from torch import Tensor

#: Bytes of float64 copies held at a time; a block of them stays in the cache.
BLOCK_BYTES = 2 << 20

#: Coordinates looked at to choose a reference.
SAMPLE = 128


def gram(values: Tensor) -> Tensor:
    """Inner products about a common reference, in float64.

    Distances between inputs follow from inner products by subtraction. Where the inputs agree to
    many digits that cancels, so one of the inputs is subtracted from all of them first; in
    float64, where the difference of two float32 numbers is exact. The reference is an input
    rather than the mean because one huge input would drag the mean away from all the others.

    Args:
        values: ``[..., n, D]``.

    Returns:
        ``[..., n, n]`` float64; rows and columns of inputs that are not finite are not finite.
    """
    products = _products(values, central_input(values))
    if not bool(torch.isfinite(products.diagonal(dim1=-2, dim2=-1)).all()):
        # The reference itself may be at fault: choose among the finite ones.
        finite = torch.isfinite(values).all(-1)
        reference = central_input(values.masked_fill(~finite.unsqueeze(-1), torch.nan))
        products = _products(values, reference)
    return products


def _products(values: Tensor, reference: Tensor) -> Tensor:
    inputs = values.shape[-2]
    width = max(64, BLOCK_BYTES // (8 * max(1, values[..., 0].numel())))
    total = torch.zeros(*values.shape[:-1], inputs, dtype=torch.float64, device=values.device)
    for start in range(0, values.shape[-1], width):
        exact = values[..., start : start + width].to(torch.float64)
        exact = exact - exact.gather(-2, reference.expand(*exact.shape[:-2], 1, exact.shape[-1]))
        total += exact @ exact.mT
    return total


def central_input(values: Tensor) -> Tensor:
    """``[..., 1, 1]`` which input lies most in the middle, judged by a sample of coordinates.

    A poor choice costs digits, not correctness, as long as the input is finite.
    """
    stride = max(1, values.shape[-1] // SAMPLE)
    sample = values[..., ::stride][..., :SAMPLE].to(torch.float64)
    distances = (sample.unsqueeze(-2) - sample.unsqueeze(-3)).abs_().amax(-1)
    distances = distances.nan_to_num_(nan=torch.inf)
    middle = distances.kthvalue((distances.shape[-1] + 1) // 2, dim=-1).values
    # Where most inputs are not finite, all are infinitely far from most: still prefer a finite one.
    alone = torch.isfinite(distances.diagonal(dim1=-2, dim2=-1))
    middle = middle.masked_fill_(alone & middle.isinf(), torch.finfo(middle.dtype).max)
    return middle.argmin(-1)[..., None, None]
