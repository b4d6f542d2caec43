"""What tests of sweeps start from."""

import pytest
from sweep_runs import contents, sweep
from sweep_server import some_digits

from bezoar import data
from bezoar.experiments import Store, _sweep


@pytest.fixture(scope="module")
def digits():
    return some_digits(20)


@pytest.fixture
def quick(digits, monkeypatch):
    """A dataset that trains in milliseconds, and checkpoints as often as is asked for."""
    monkeypatch.setitem(data.DATASETS, "some_digits", lambda: digits)
    monkeypatch.setattr(_sweep, "WORTH", 0)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def expected(tmp_path):
    """What the store of an undisturbed sweep contains."""

    def make(wanted):
        other = Store(tmp_path / "expected")
        assert not sweep(wanted, other).failures
        return contents(other)

    return make
