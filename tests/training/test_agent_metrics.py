"""Accuracy and loss of every single agent over time."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from bezoar import run
from bezoar.data import mnist
from bezoar.training import SoftmaxTask

FIELDS = {"network": "fan", "partition": "by_class", "samples": 1000, "iterations": 3, "every": 2}


@pytest.fixture(scope="module")
def history():
    return run(**FIELDS, aggregator="ios", agent_metrics=True)


def test_they_are_those_of_the_agents_final_models(history):
    tests = mnist()
    pixels = torch.tensor(tests.test).flatten(1) / 127.5 - 1
    labels = torch.tensor(tests.test_labels)
    weights = history.models[:, : 10 * 784].view(-1, 10, 784)
    scores = torch.einsum("acf,nf->anc", weights, pixels) + history.models[:, None, 10 * 784 :]
    accuracy = (scores.argmax(-1) == labels).double().mean(1)
    loss = [float(cross_entropy(own, labels)) for own in scores]
    assert history.agents["accuracy"].shape == history.agents["test_loss"].shape == (3, 10)
    np.testing.assert_allclose(history.agents["accuracy"][-1], accuracy, atol=2e-4)
    np.testing.assert_allclose(history.agents["test_loss"][-1], loss, rtol=1e-4)


def test_mean_and_worst_are_over_the_regular_ones(history):
    regular = np.delete(history.agents["accuracy"], 9, axis=1)
    np.testing.assert_allclose(history["accuracy_mean"], regular.mean(1))
    np.testing.assert_array_equal(history["accuracy_worst"], regular.min(1))


def test_models_are_not_tested_twice_and_metrics_stay_the_same(history, monkeypatch):
    tested = []
    test = SoftmaxTask.test

    def count(self, models, buffers, which, loss=False):
        tested.append(len(which))
        return test(self, models, buffers, which, loss)

    monkeypatch.setattr(SoftmaxTask, "test", count)
    chosen = ["accuracy_mean", "accuracy_worst"]
    again = run(**FIELDS, aggregator="ios", agent_metrics=True, metrics=chosen)
    assert tested == [10, 10, 10]
    tested.clear()
    without = run(**FIELDS, aggregator="ios", metrics=chosen)
    assert tested == [9, 9, 9]
    assert without.agents == {}
    for name in chosen:
        assert again[name].tobytes() == without[name].tobytes() == history[name].tobytes()
