"""Runs for tests of the store, made without training and without torch."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from bezoar.experiments import RunSpec, Store, provenance

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class Measured:
    """As much of a history as the store needs."""

    iterations: np.ndarray = field(default_factory=lambda: np.array([0, 10, 20]))
    metrics: dict = field(
        default_factory=lambda: {
            "accuracy": np.array([0.1, 0.5, 0.9]),
            "poison_share": np.array([np.nan, 0.25, 1 / 3]),
        }
    )
    diverged: bool = False


def spec(**fields):
    """A spec whose names are not looked up, which would import torch."""
    return RunSpec.recall({"network": "fan", "iterations": 20, **fields})


def origin(seconds=1.0, trained_with=()):
    return provenance(START, START + timedelta(seconds=seconds), trained_with)


def fill(store, *specs):
    """Save runs with made-up measurements; the stored runs."""
    return [store.save(one, Measured(), origin()) for one in specs]


def new_store(path):
    return Store(path / "store")


def names(folder):
    """What is in a folder, nothing if it is not there."""
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def contents(folder, without=("provenance.json",)):
    """The bytes of all files below a folder, by their paths."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in without
    }
