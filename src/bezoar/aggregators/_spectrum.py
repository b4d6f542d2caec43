"""In which direction inputs vary most, from their squared distances alone."""

import torch
from torch import Tensor
from torch.nn.functional import pad


def about_mean(squared: Tensor, weights: Tensor) -> Tensor:
    """``[..., m, m]`` inner products of the inputs about their weighted mean.

    Args:
        squared: ``[..., m, m]`` squared distances.
        weights: ``[..., m]`` from zero. Where all are zero the result means nothing, but is finite.
    """
    share = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    to_mean = (squared @ share.unsqueeze(-1)).squeeze(-1)
    to_mean = to_mean - (share * to_mean).sum(-1, keepdim=True) / 2
    return (to_mean.unsqueeze(-1) + to_mean.unsqueeze(-2) - squared).div_(2)


def widest_direction(squared: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The direction in which weighted inputs vary most, as a principal component analysis has it.

    Args:
        squared: ``[..., m, m]`` squared distances.
        weights: ``[..., m]`` from zero; not all zero.

    Returns:
        ``[..., 1]`` the variance in that direction, and ``[..., m]`` every input's squared distance
        to the mean in that direction.
    """
    products, root = about_mean(squared, weights), weights.sqrt()
    scaled = products * root.unsqueeze(-1) * root.unsqueeze(-2)
    # Unless every matrix begins at 64 bytes, and in any other layout, last bits would depend on how
    # many are solved at once.
    slots = weights.shape[-1]
    values, vectors = torch.linalg.eigh(pad(scaled, (0, -slots % 4, 0, -slots % 4)))
    largest, widest = values[..., -1:].clamp(min=0), vectors[..., :slots, -1].contiguous()
    along = (products @ (root * widest).unsqueeze(-1)).squeeze(-1)
    # Where nothing varies there is no direction, and nobody is away from the mean.
    tiny = torch.finfo(largest.dtype).tiny
    away = (along / largest.clamp(min=tiny).sqrt_()).square_()
    return largest / weights.sum(-1, keepdim=True), away
