"""Sorting as far as needed, against ``numpy.sort``."""

import numpy as np
import pytest
import torch

from bezoar.exchange import _sorting
from bezoar.exchange._sorting import sort_ends


def assert_sorted_ends(values, low, high):
    count = len(values)
    expected = np.sort(values, axis=0)
    found = torch.stack(sort_ends(list(torch.from_numpy(values.copy())), low, high)).numpy()
    assert np.array_equal(found[:low], expected[:low])
    assert np.array_equal(found[max(0, count - high) :], expected[max(0, count - high) :])
    # What lies between may be in any order, but all of it has to be there.
    assert np.array_equal(np.sort(found, axis=0), expected)


@pytest.mark.parametrize("count", [*range(1, 18), 31, 32, 33, 40])
def test_any_number_of_ranks_at_either_end(count):
    rng = np.random.default_rng(count)
    ends = sorted({0, 1, 2, 3, count // 2, count - 1, count})
    for low in ends:
        for high in ends:
            if low <= count and high <= count:
                assert_sorted_ends(rng.normal(size=(count, 17)), low, high)


def test_ties_and_infinities():
    rng = np.random.default_rng(0)
    for count in range(2, 12):
        values = rng.choice([-np.inf, -1.0, 0.0, 1.0, np.inf], size=(count, 200))
        for low, high in ((1, 1), (2, 0), (0, 2), (count, count)):
            assert_sorted_ends(values, min(low, count), min(high, count))


@pytest.mark.parametrize("count", range(2, 14))
def test_the_sorting_network_sorts_all_zeros_and_ones(count):
    # A network of exchanges that sorts these sorts everything.
    codes = np.arange(2**count)
    values = ((codes >> np.arange(count)[:, None]) & 1).astype(np.float32)
    found = torch.stack(sort_ends(list(torch.from_numpy(values)), count, count)).numpy()
    assert (np.diff(found, axis=0) >= 0).all()


def test_trimming_one_takes_fewer_exchanges_than_sorting():
    exchanges = sum(1 for _ in _sorting._ends(10, 1, 1))
    assert exchanges < len(_sorting._batcher(10))
