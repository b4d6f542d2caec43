"""Statistics of batch normalisation that several agents hold together."""

from collections.abc import Mapping

from torch import Tensor


def pool_buffers(buffers: Mapping[str, Tensor], weights: Tensor) -> dict[str, Tensor]:
    """The buffers of an average model, ``[runs, …]``, from every agent's ``[runs, agents, …]``.

    Running means are averaged. A running variance becomes the variance of what all agents have
    seen: the mean of the variances plus the variance of the means. Other numbers are averaged; of
    counters the largest is taken. The weights ``[runs, agents]`` sum to one. What agents without
    weight hold plays no part, finite or not.
    """
    found = {}
    for name, values in buffers.items():
        if not values.is_floating_point():
            unheard = _beside(values, weights) == 0
            found[name] = values.masked_fill(unheard, 0).amax(1)
            continue
        found[name] = _mean(values, weights)
        prefix, _, kind = name.rpartition("running_")
        means = buffers.get(f"{prefix}running_mean") if kind == "var" else None
        if means is not None:
            apart = means - _mean(means, weights).unsqueeze(1)
            found[name] += _mean(apart.square(), weights)
    return found


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    """``[runs, …]`` the weighted mean over agents."""
    weights = _beside(values, weights)
    return (values.masked_fill(weights == 0, 0) * weights.to(values.dtype)).sum(1)


def _beside(values: Tensor, weights: Tensor) -> Tensor:
    """``[runs, agents, 1, …]`` weights that fit values ``[runs, agents, …]``."""
    return weights.view(*weights.shape, *[1] * (values.ndim - 2))
