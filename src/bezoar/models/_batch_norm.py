"""Statistics of batch normalisation that several agents hold together."""

from torch import Tensor


def pool_statistics(means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and variance of what several agents have seen, each as much as any other.

    The mean is the mean of the means. The variance is the total variance: the mean of the
    variances plus the variance of the means.

    Args:
        means: ``[..., agents, C]`` every agent's mean of each channel.
        variances: ``[..., agents, C]`` every agent's variance of each channel.

    Returns:
        ``[..., C]`` the mean and the variance of each channel.
    """
    return means.mean(-2), variances.mean(-2) + means.var(-2, correction=0)
