"""Rules against those of other packages, where the definition is the same.

They are not the same everywhere. ByzFL's Krum adds up one distance more, and its SMEA and CAF take
one step of a power iteration from a random vector. TorchJD's Krum does not square distances.
"""

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest
import torch
from aggregator_inputs import assert_close

from bezoar import aggregators


@pytest.fixture
def byzfl(monkeypatch):
    """ByzFL's aggregators alone: the rest of the package needs torchvision."""
    found = find_spec("byzfl")
    if found is None:
        pytest.skip("ByzFL is not installed: pip install --no-deps byzfl")
    package = ModuleType("byzfl")
    package.__path__ = list(found.submodule_search_locations)
    monkeypatch.setitem(sys.modules, "byzfl", package)
    yield importlib.import_module("byzfl.aggregators")
    for name in [name for name in sys.modules if name.startswith("byzfl.")]:
        del sys.modules[name]


def cases(scale=1.0):
    """``[n, D]`` inputs, own first, and how many are taken for poisoned; some far away."""
    rng = np.random.default_rng(0)
    for inputs, poisoned in ((3, 0), (5, 1), (8, 2), (9, 4), (11, 3)):
        values = 1 + scale * rng.normal(size=(inputs, 20))
        values[inputs - poisoned :] += 10 * scale * rng.normal(size=20)
        yield values, poisoned


#: Our rule, and how ByzFL makes and applies the same one.
BYZFL = {
    "mean": lambda theirs, q, x: theirs.Average()(x),
    "median": lambda theirs, q, x: theirs.Median()(x),
    "trimmed_mean": lambda theirs, q, x: theirs.TrMean(f=q)(x),
    "meamed": lambda theirs, q, x: theirs.Meamed(f=q)(x),
    "least_diameter": lambda theirs, q, x: theirs.MDA(f=q)(x),
    "nearest": lambda theirs, q, x: theirs.MoNNA(f=q, idx=0)(x),
    "nnm+trimmed_mean": lambda theirs, q, x: theirs.TrMean(f=q)(theirs.NNM(f=q)(x)),
    "nnm+nearest": lambda theirs, q, x: theirs.MoNNA(f=q, idx=0)(theirs.NNM(f=q)(x)),
}


@pytest.mark.parametrize("scale", [1.0, 1e-8])
@pytest.mark.parametrize("name", BYZFL)
def test_byzfl(byzfl, name, scale):
    rule = aggregators.create(name)
    for inputs, poisoned in cases(scale):
        found = rule.at(inputs, estimate=poisoned)
        assert_close(found, BYZFL[name](byzfl, poisoned, inputs), 1e-9 * scale + 1e-15)


def test_byzfl_centered_clipping(byzfl):
    for inputs, _ in cases():
        theirs = byzfl.CenteredClipping(L=3, tau=2.0)
        theirs.m = inputs[0]
        found = aggregators.CenteredClipping(threshold=2.0, steps=3).at(inputs)
        with np.errstate(divide="ignore"):  # the own input is at distance zero
            assert_close(found, theirs(inputs), 1e-12)


def test_torchjd():
    theirs = pytest.importorskip(
        "torchjd.aggregation", reason="TorchJD is not installed: pip install --no-deps torchjd"
    )
    for inputs, poisoned in cases():
        matrix = torch.from_numpy(inputs)
        trimmed = aggregators.TrimmedMean().at(matrix, estimate=poisoned)
        assert_close(trimmed, theirs.TrimmedMean(poisoned)(matrix), 1e-12)
        assert_close(aggregators.Mean().at(matrix), theirs.Mean()(matrix), 1e-12)
