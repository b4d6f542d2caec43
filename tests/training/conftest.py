import pytest
from setting import Setting

from bezoar import data, training
from bezoar._seeds import Purpose, generator


@pytest.fixture(scope="session")
def workers():
    with training.Workers(2) as pool:
        yield pool


@pytest.fixture(scope="session")
def problem(small_mnist):
    """Make a setting on a few hundred real digits."""

    def make(agents=10, partition="by_class", iterations=6, every=2, dtype="float64", **changes):
        deal = data.partition(partition)
        dealt = deal(
            small_mnist.train_labels,
            10,
            agents,
            generator(changes.pop("seed", 0), Purpose.PARTITION),
        )
        return Setting(
            small_mnist, dealt, iterations=iterations, every=every, dtype=dtype, **changes
        )

    return make
