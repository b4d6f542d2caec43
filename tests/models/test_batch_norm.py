import torch
from hypothesis import given
from hypothesis import strategies as st

from bezoar.models import pool_buffers


def statistics(values):
    """``[runs, agents, samples, channels]`` values as batch norm keeps them."""
    return {
        "norm.running_mean": values.mean(-2),
        "norm.running_var": values.var(-2, correction=0),
    }


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@given(st.integers(1, 6), st.integers(1, 20), st.integers(1, 5), st.integers(0, 99))
def test_pooled_statistics_are_those_of_all_data_together(agents, samples, channels, seed):
    """For every run by itself, and without the agents that have no weight."""
    values = drawn(2, agents + 1, samples, channels, seed=seed)
    values = values + 3 * torch.arange(agents + 1)[:, None, None]  # agents that differ
    values[:, -1] = torch.nan
    weights = torch.tensor([1 / agents] * agents + [0.0], dtype=torch.float64).expand(2, -1)
    found = pool_buffers(statistics(values), weights)
    counted = values[:, :-1]
    expected = statistics(counted.reshape(2, agents * samples, channels))
    for name, pooled in expected.items():
        torch.testing.assert_close(found[name], pooled, rtol=1e-12, atol=1e-12)


def test_unequal_weights_are_samples_taken_more_often():
    values = drawn(1, 2, 5, 3)
    weights = torch.tensor([[0.25, 0.75]], dtype=torch.float64)
    repeated = values[:, [0, 1, 1, 1]].reshape(1, 20, 3)
    found = pool_buffers(statistics(values), weights)
    for name, pooled in statistics(repeated).items():
        torch.testing.assert_close(found[name], pooled, rtol=1e-12, atol=1e-12)


def test_other_buffers_are_averaged_and_counters_are_the_largest():
    weights = torch.tensor([[0.5, 0.5, 0.0]])
    found = pool_buffers(
        {
            "seen": torch.tensor([[1.0, 3.0, 100.0]]),
            "alone.running_var": torch.tensor([[[1.0], [3.0], [100.0]]]),  # without a mean
            "count": torch.tensor([[1, 3, 100]]),
        },
        weights,
    )
    assert {name: values.tolist() for name, values in found.items()} == {
        "seen": [2.0],
        "alone.running_var": [[2.0]],
        "count": [3],
    }
