"""Data: datasets, and partitions of them over agents.

Here belongs what samples there are and which agent holds them: datasets by name and from files,
how they are read safely, and the ways to divide them. Nothing here needs torch.
"""

from collections.abc import Callable
from typing import Any

from bezoar import _options
from bezoar.data._cifar import cifar10, cifar100
from bezoar.data._dataset import Dataset
from bezoar.data._mnist import fashion_mnist, mnist
from bezoar.data._npz import from_npz
from bezoar.data._official import DATA_VARIABLE
from bezoar.data._partitions import IID, ByClass, Dirichlet, Drawn, Partition, Partitioner
from bezoar.data._tiny_imagenet import tiny_imagenet

#: Every dataset by its name.
DATASETS: dict[str, Callable[..., Dataset]] = {
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "tiny_imagenet": tiny_imagenet,
    "npz": from_npz,
}

#: Every partition by its name.
PARTITIONS: dict[str, type[Partitioner]] = {
    kind.name: kind for kind in (IID, Dirichlet, ByClass, Drawn)
}

__all__ = [
    "DATASETS",
    "DATA_VARIABLE",
    "IID",
    "PARTITIONS",
    "ByClass",
    "Dataset",
    "Dirichlet",
    "Drawn",
    "Partition",
    "Partitioner",
    "cifar10",
    "cifar100",
    "fashion_mnist",
    "from_npz",
    "load",
    "mnist",
    "partition",
    "tiny_imagenet",
]


def load(name: str, **options: Any) -> Dataset:
    """The dataset called ``name``, read with the given options."""
    return _options.create("dataset", name, DATASETS, options)


def partition(name: str, **options: Any) -> Partitioner:
    """The partition called ``name``, made with the given options."""
    return _options.create("partition", name, PARTITIONS, options)
