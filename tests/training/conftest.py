import numpy as np
import pytest
from archives import cifar100_archive
from setting import Setting

from bezoar import data, training
from bezoar._seeds import Purpose, generator


@pytest.fixture(scope="session")
def workers():
    with training.Workers(2) as pool:
        yield pool


@pytest.fixture(scope="session")
def few_cifar(request, tmp_path_factory):
    """Ten classes of CIFAR-100, 16 training and 4 test images each: real ones, or else random."""
    try:
        folder = request.getfixturevalue("real_archives")
    except pytest.skip.Exception:  # nothing is skipped: random images take their place
        folder = tmp_path_factory.mktemp("archives")
        cifar100_archive(folder / "cifar-100-python-random.tar.gz", train=16, test=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        whole = data.cifar100(str(folder))
    parts = []
    for part, count in (("train", 16), ("test", 4)):
        labels = getattr(whole, f"{part}_labels")
        few = np.concatenate([np.flatnonzero(labels == kind)[:count] for kind in range(10)])
        parts += [np.array(getattr(whole, part)[few]), labels[few]]
    return data.Dataset("few_cifar", *parts, classes=10)


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
