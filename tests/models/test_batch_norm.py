import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bezoar.models import pool_statistics


def statistics(values):
    return values.mean(-2), values.var(-2, correction=0)


@given(st.integers(1, 6), st.integers(1, 20), st.integers(1, 5), st.integers(0, 99))
def test_pooled_statistics_are_those_of_all_data_together(agents, samples, channels, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(agents, samples, channels, generator=generator, dtype=torch.float64)
    values = values + 3 * torch.arange(agents)[:, None, None]  # agents that differ
    mean, variance = pool_statistics(*statistics(values))
    expected_mean, expected_variance = statistics(values.reshape(-1, channels))
    torch.testing.assert_close(mean, expected_mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(variance, expected_variance, rtol=1e-12, atol=1e-12)


def test_runs_are_pooled_apart():
    generator = torch.Generator().manual_seed(0)
    means, variances = torch.rand(2, 3, 4, 5, generator=generator)
    together = pool_statistics(means, variances)
    for run in range(3):
        for found, alone in zip(together, pool_statistics(means[run], variances[run]), strict=True):
            torch.testing.assert_close(found[run], alone, rtol=1e-6, atol=0)


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 2, 0)])
def test_the_order_of_agents_does_not_matter(order):
    generator = torch.Generator().manual_seed(1)
    means, variances = torch.rand(2, 3, 5, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(
        pool_statistics(means, variances),
        pool_statistics(means[list(order)], variances[list(order)]),
    )
