"""Datasets, and partitions of them over agents."""

from collections.abc import Callable
from typing import Any

from bezoar import _registry
from bezoar.data._dataset import Dataset
from bezoar.data._mnist import mnist
from bezoar.data._partitions import IID, ByClass, Dirichlet, Partition, Partitioner

#: Every dataset by its name.
DATASETS: dict[str, Callable[[], Dataset]] = {"mnist": mnist}

#: Every partition by its name.
PARTITIONS: dict[str, type[Partitioner]] = {kind.name: kind for kind in (IID, Dirichlet, ByClass)}

__all__ = [
    "DATASETS",
    "IID",
    "PARTITIONS",
    "ByClass",
    "Dataset",
    "Dirichlet",
    "Partition",
    "Partitioner",
    "load",
    "mnist",
    "partition",
]


def load(name: str) -> Dataset:
    """The dataset called ``name``."""
    return _registry.choose("dataset", name, DATASETS)()


def partition(name: str, **options: Any) -> Partitioner:
    """The partition called ``name``, made with the given options."""
    return _registry.create("partition", name, PARTITIONS, options)
