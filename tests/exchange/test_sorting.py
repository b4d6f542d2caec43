"""Sorting as far as needed, against ``numpy.sort``."""

import numpy as np
import pytest
import torch

from bezoar.exchange._sorting import comparisons, sort_ends


def assert_sorted_ends(values, ends):
    count = len(values)
    expected = np.sort(values, axis=0)
    found = torch.stack(sort_ends(list(torch.from_numpy(values.copy())), ends)).numpy()
    assert np.array_equal(found[:ends], expected[:ends])
    assert np.array_equal(found[max(0, count - ends) :], expected[max(0, count - ends) :])
    # What lies between may be in any order, but all of it has to be there.
    assert np.array_equal(np.sort(found, axis=0), expected)


@pytest.mark.parametrize("count", [*range(1, 18), 31, 32, 33, 40])
def test_any_number_of_ranks_at_either_end(count):
    rng = np.random.default_rng(count)
    for ends in {0, 1, 2, 3, count // 2, count - 1, count}:
        assert_sorted_ends(rng.normal(size=(count, 17)), min(ends, count))


def test_ties_and_infinities():
    rng = np.random.default_rng(0)
    for count in range(2, 12):
        values = rng.choice([-np.inf, -1.0, 0.0, 1.0, np.inf], size=(count, 200))
        for ends in (0, 1, 2, count):
            assert_sorted_ends(values, min(ends, count))


@pytest.mark.parametrize("count", range(2, 14))
def test_the_sorting_network_sorts_all_zeros_and_ones(count):
    # A network of exchanges that sorts these sorts everything.
    codes = np.arange(2**count)
    values = ((codes >> np.arange(count)[:, None]) & 1).astype(np.float32)
    found = torch.stack(sort_ends(list(torch.from_numpy(values)), count)).numpy()
    assert (np.diff(found, axis=0) >= 0).all()


def test_trimming_one_takes_as_few_comparisons_as_finding_both_ends():
    # So many are enough, and needed, to find the smallest and the largest.
    for count in range(3, 20):
        assert len(comparisons(count, 1)) == -(-3 * count // 2) - 2
        assert len(comparisons(count, 1)) <= len(comparisons(count, count))
