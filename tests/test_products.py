"""Matrix products: the same as the plain product in float64, however matrices lie in memory."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bezoar._products import linear

sizes = st.integers(0, 40)


@given(sizes, sizes, st.integers(1, 300), st.booleans(), st.booleans(), st.integers(0, 9))
def test_is_the_plain_product(rows, columns, inner, left_turned, right_turned, seed):
    draw = torch.Generator().manual_seed(seed)

    def matrix(height, turned):
        shape = (inner, height) if turned else (height, inner)
        values = torch.randn(shape, generator=draw)
        return values.T if turned else values

    left, right = matrix(rows, left_turned), matrix(columns, right_turned)
    exact = left.double() @ right.double().T
    scale = left.double().abs() @ right.double().abs().T
    assert (linear(left, right) - exact).abs().le(1e-6 * scale).all()
    assert torch.equal(linear(left.double(), right.double()), exact)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_in_its_row(bad):
    left, right = torch.rand(5, 40), torch.rand(7, 40)
    left[2, 3] = bad
    product = linear(left, right)
    assert product.isfinite().all(1).tolist() == [True, True, False, True, True]
    assert not product[2].isfinite().any()
