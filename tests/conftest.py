from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import settings

from bezoar import data

# Examples are drawn afresh on every machine but the same everywhere: a red build stays red.
settings.register_profile("bezoar", deadline=None, derandomize=True)
settings.load_profile("bezoar")


@pytest.fixture(scope="session")
def small_mnist():
    """Real MNIST, 40 training and 10 test images a class."""
    whole = data.mnist()

    def first_of_each(labels, count):
        return np.sort(np.concatenate([np.flatnonzero(labels == c)[:count] for c in range(10)]))

    train = first_of_each(whole.train_labels, 40)
    test = first_of_each(whole.test_labels, 10)
    return data.Dataset(
        "small_mnist",
        whole.train[train],
        whole.train_labels[train],
        whole.test[test],
        whole.test_labels[test],
        classes=10,
    )


@contextmanager
def _under_its_name(few):
    """Let specs that say MNIST have a few images instead, so that they are run in no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(data.DATASETS, "mnist", lambda: few)
        yield few


@pytest.fixture
def tiny_mnist(small_mnist):
    """A few images of MNIST under its name."""
    with _under_its_name(small_mnist) as few:
        yield few


@pytest.fixture(scope="module")
def tiny_mnist_throughout(small_mnist):
    """The same for all tests of a module."""
    with _under_its_name(small_mnist) as few:
        yield few
