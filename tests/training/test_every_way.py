"""Whichever way a run is computed, for every rule and every attack, the result is the same."""

import pytest
import torch
from test_against_plain_loop import made_runs

from bezoar import training
from bezoar.aggregators import _by_rank, _exchange, _gram

#: How far results may be apart, as a share of the largest number in the models.
CLOSE = {"float32": 1e-5, "float64": 1e-11}


@pytest.fixture(scope="module", params=CLOSE)
def trained(request, problem):
    """A problem, every rule under every attack on it, and their models trained side by side."""
    shared = problem(dtype=request.param, iterations=4, every=4, metrics=())
    runs = made_runs()
    return shared, runs, models_of(shared, runs)


def models_of(shared, runs, workers=2):
    with training.Workers(workers) as pool:
        return [history.models for history in training.Engine(shared, runs, pool).train()]


def agree(shared, runs, found, expected):
    for run, left, right in zip(runs, found, expected, strict=True):
        apart = float((left - right).abs().max() / right.abs().max())
        assert apart <= CLOSE[shared.dtype], (run.aggregator.name, run.attack.name, apart)


def test_alone(trained):
    shared, runs, together = trained
    agree(shared, runs, [models_of(shared, [run])[0] for run in runs], together)


def test_with_one_worker(trained):
    shared, runs, together = trained
    for found, expected in zip(models_of(shared, runs, workers=1), together, strict=True):
        assert torch.equal(found, expected)


def test_gathered_as_on_sparse_networks(trained, monkeypatch):
    shared, runs, together = trained
    monkeypatch.setattr(_exchange, "DENSE_ADVANTAGE", 0)
    agree(shared, runs, models_of(shared, runs), together)


def test_gathered_in_small_chunks(trained, monkeypatch):
    shared, runs, together = trained
    monkeypatch.setattr(_exchange, "DENSE_ADVANTAGE", 0)
    monkeypatch.setattr(_exchange, "CHUNK_BYTES", 1 << 18)
    monkeypatch.setattr(_by_rank, "RANK_BYTES", 1 << 16)
    agree(shared, runs, models_of(shared, runs), together)


def test_in_small_blocks(trained, monkeypatch):
    shared, runs, together = trained
    monkeypatch.setattr(_gram, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(_gram, "COLUMNS", 1_000)
    agree(shared, runs, models_of(shared, runs), together)
