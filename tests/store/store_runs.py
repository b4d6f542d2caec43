"""Runs for tests of the store, made without training and without torch."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from bezoar import networks
from bezoar._files import digest
from bezoar.experiments import RunSpec, provenance, versions
from bezoar.store import DIGITS, Finished, Store

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
    agents: dict = field(default_factory=dict)
    listening: dict = field(default_factory=dict)


def document(**fields):
    """A spec as the store sees it: a document that it does not look into."""
    return {"network": "fan", "iterations": 20, **fields}


def spec(**fields):
    """A spec that can be run; its names are looked up, which imports torch."""
    return RunSpec.read(document(**fields))


def key(of):
    """A key for a document or a spec; the store takes any."""
    told = of.document() if isinstance(of, RunSpec) else of
    return digest(json.dumps(told, sort_keys=True).encode())[:DIGITS]


def origin(seconds=1.0, trained_with=()):
    ended = START + timedelta(seconds=seconds)
    return provenance(START, ended) | {"trained_with": list(trained_with)}


def finished(of, network=None, history=None):
    """What is kept of a run; by default made-up measurements on a fan."""
    told, texts = (of.document(), of.texts()) if isinstance(of, RunSpec) else (of, {})
    return Finished(told, texts, versions(), network or networks.fan(10, 1), history or Measured())


def save(store, of, history=None, about=None, **options):
    """Save a run; by default with made-up measurements."""
    return store.save(key(of), finished(of, history=history), about or origin(), **options)


def fill(store, *runs):
    """Save runs, given as documents or specs, with made-up measurements; the stored runs."""
    return [save(store, one) for one in runs]


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
