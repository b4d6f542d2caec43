"""Products over the features in which an agent's samples differ, against products over all."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bezoar.models import SoftmaxRegression
from bezoar.training._varying_features import VaryingFeatures

CPU = torch.device("cpu")
CLASSES = 3


def held(samples, features):
    model = SoftmaxRegression(CLASSES, features)
    return model, VaryingFeatures(model, samples, torch.float64, CPU)


@st.composite
def samples_in_part_constant(draw):
    """Up to 70 features, so that there are models of one to five times 16, some the same in all."""
    count, features = draw(st.integers(1, 5)), draw(st.integers(1, 70))
    numbers = st.floats(-3, 3, width=32)
    samples = draw(arrays.arrays(np.float64, (count, features), elements=numbers))
    same = draw(arrays.arrays(np.bool_, features))
    return np.where(same, samples[:1], samples)


@given(samples_in_part_constant(), st.integers(0, 2**32))
def test_scores_and_gradients_are_those_of_all_features(samples, seed):
    model, short = held(samples, samples.shape[1])
    design = model.design(samples, torch.float64)
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(2, model.parameters, dtype=torch.float64, generator=generator)
    rows = model.unflatten(vectors)
    assert torch.allclose(short.narrow(rows) @ short.samples.T, rows @ design.T, atol=1e-10)
    chances = torch.rand(2, CLASSES, len(samples), dtype=torch.float64, generator=generator)
    found = short.widen(chances @ short.samples)
    assert torch.allclose(found, chances @ design, atol=1e-10)
    assert (found[..., model.features + 1 :] == 0).all()  # the padding stays zero


def test_the_pixels_that_differ_in_one_digit_are_fewer(small_mnist):
    samples = small_mnist.train[small_mnist.train_labels == 1]
    differing = (samples != samples[0]).any(0).sum()
    model, short = held(samples, small_mnist.features)
    assert short.samples.shape[1] == -(-(differing + 1) // 16) * 16 < model.width


@pytest.mark.parametrize("features", [15, 16, 31])
def test_where_all_features_differ_samples_are_the_models_own(features):
    samples = np.arange(2.0 * features).reshape(2, features)
    model, short = held(samples, features)
    assert torch.equal(short.samples, model.design(samples, torch.float64))
    rows = torch.rand(CLASSES, model.width, dtype=torch.float64)
    assert short.narrow(rows) is rows
    assert short.widen(rows) is rows


def test_samples_that_are_all_the_same_leave_the_bias():
    model, short = held(np.full((4, 40), 2.0), 40)
    assert short.samples[:, 0].tolist() == [1] * 4
    assert short.samples.shape == (4, 16)
    rows = torch.ones(CLASSES, model.width, dtype=torch.float64)
    assert (short.narrow(rows)[:, 0] == 81).all()
