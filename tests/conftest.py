import os
from contextlib import contextmanager
from pathlib import Path

# It is read when numpy is imported. With several threads, those of every product wait for each
# other, which takes many times as long where all cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from archives import cifar100_archive, tiny_imagenet_archive
from hypothesis import settings

from bezoar import data

# Tests that fork find gRPC's threads gone, which it would complain about.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Examples are drawn afresh on every machine but the same everywhere: a red build stays red.
settings.register_profile("bezoar", deadline=None, derandomize=True)
settings.load_profile("bezoar")


@pytest.fixture(scope="session", autouse=True)
def torch_on_one_thread():
    """Torch at one thread, as the package has it when it trains.

    It is for the same reason as numpy's, above. Processes that tests start have as many threads in
    torch as they have for a user.
    """
    torch.set_num_threads(1)


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


@pytest.fixture(scope="session")
def real_archives():
    """A folder with real images: cut-down archives of CIFAR-100 and Tiny-ImageNet.

    They lie beside the repository or in the folder that BEZOAR_SHARED_DATA names; where they do
    not, tests that need them are skipped.
    """
    beside = Path(__file__).parents[2] / "shared" / "data"
    for folder in (beside, Path(os.environ.get("BEZOAR_SHARED_DATA", beside))):
        if any(folder.glob("cifar-100-python-*")) and any(folder.glob("tiny-imagenet-200-*")):
            return folder
    # Reason: these images may not be shipped with the project. The same tests also run on archives
    # of random images in the same layout, see image_archives.
    pytest.skip("no archives of real images here")


@pytest.fixture(scope="session")
def random_archives(tmp_path_factory):
    """A folder with archives of a few random images in the same layout."""
    folder = tmp_path_factory.mktemp("archives")
    cifar100_archive(folder / "cifar-100-python-random.tar.gz", train=2, test=1)
    tiny_imagenet_archive(folder / "tiny-imagenet-200-random.zip", classes=200, train=2, test=1)
    return folder


@pytest.fixture(scope="session", params=["real", "random"])
def image_archives(request):
    """A folder with cut-down archives: one with real images, where there are some, and one made."""
    return request.getfixturevalue(f"{request.param}_archives")


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
