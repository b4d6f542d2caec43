"""Modules that need several samples, write to their inputs, have buffers of their own, or frozen
parameters; and agents with a single sample."""

import numpy as np
import pytest
import torch
from small_networks import BATCH, gradients_of, mlp, run_of, task_of, together
from torch import nn

from bezoar import BezoarError, attacks, data, training


def normed():
    """Batch norm over single numbers, which needs two samples at a time."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 5), nn.BatchNorm1d(5), nn.Linear(5, 10))


class Centred(nn.Module):
    """Writes to its inputs, unless a copy is made first."""

    def __init__(self, copies=False):
        super().__init__()
        self.output, self.copies = nn.Linear(784, 10), copies

    def forward(self, inputs):
        inputs = inputs.clone() if self.copies else inputs
        inputs -= 1.0
        return self.output(inputs.flatten(1))


class Projected(nn.Module):
    """A layer on random features, a buffer that follows from the seed."""

    def __init__(self):
        super().__init__()
        self.register_buffer("features", torch.randn(784, 8))
        self.output = nn.Linear(8, 10)

    def forward(self, inputs):
        return self.output(inputs.flatten(1) @ self.features)


def sizes_of(counts):
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return data.Partition(np.arange(offsets[-1]), offsets)


@pytest.mark.parametrize("counts", [(9, 9, 9, 1), (9, 9, 4, 3)])
def test_gradients_are_measured_where_a_sample_is_left_alone(small_mnist, workers, counts):
    partition = sizes_of(counts)
    task = task_of(small_mnist, [run_of()], workers, normed, partition, batch=2)
    gradients, costs = task.gradients_at(*together(task))
    assert bool(gradients.isfinite().all())
    assert bool(costs.isfinite().all())
    judged = task.losses(0, 3, task.start()["models"][0, :1], 1, iteration=1)
    assert judged.shape == (1,)


def test_a_sample_left_alone_costs_what_it_costs_in_training(small_mnist, workers):
    """The only batch of an agent with one sample is that sample again and again."""
    partition, runs = sizes_of((9, 9, 9, 1)), [run_of(attack="non_finite")]
    task = task_of(small_mnist, runs, workers, normed, partition, batch=2)
    measured, _ = task.gradients_at(*together(task))
    assert torch.allclose(measured[:, 3], gradients_of(task)[:, 3], rtol=1e-10, atol=1e-12)


def test_modules_may_write_to_their_inputs(small_mnist, workers):
    """Runs share batches, and all models are tested on the same samples."""
    runs = [run_of(), run_of(attack="random_labels"), run_of("mean")]
    options = {"iterations": 2, "metrics": tuple(training.METRICS), "agent_metrics": True}
    found, expected = (
        training.Engine(task_of(small_mnist, runs, workers, model), **options).train()
        for model in (Centred, lambda: Centred(copies=True))
    )
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one.models, other.models)
        for name in training.METRICS:
            np.testing.assert_array_equal(one[name], other[name])
        np.testing.assert_array_equal(one.agents["test_loss"], other.agents["test_loss"])


@pytest.mark.parametrize("judge", ["own", "average"])
def test_labels_are_chosen_by_the_buffers_of_the_run(small_mnist, workers, judge):
    def run(seed):
        attack = attacks.DynamicLabelFlip(judge=judge)
        return training.Run(**(vars(run_of()) | {"attack": attack, "seed": seed}))

    both = task_of(small_mnist, [run(0), run(1)], workers, Projected)
    alone = task_of(small_mnist, [run(1)], workers, Projected)
    [measured] = alone.gradients_at(*together(alone))[0]
    assert torch.equal(both.gradients_at(*together(both))[0][1], measured)
    assert torch.equal(gradients_of(both)[1], gradients_of(alone)[0])
    [models] = alone.start()["models"]
    for agent in range(4):
        found = both.losses(1, agent, models, BATCH, iteration=1)
        assert torch.equal(found, alone.losses(0, agent, models, BATCH, iteration=1))


def test_trying_takes_no_more_samples_at_a_time_than_training(small_mnist, workers):
    taken = set()

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.output = nn.Linear(784, 10)

        def forward(self, inputs):
            taken.add(len(inputs))
            return self.output(inputs.flatten(1))

    task_of(small_mnist, [run_of()], workers, Counted, accumulate=4, threads=None).start()
    assert max(taken) == BATCH // 4


def test_a_module_without_anything_to_train_is_refused(small_mnist, workers):
    frozen = mlp().requires_grad_(False)
    with pytest.raises(BezoarError, match="model: expected parameters to train, found all of them"):
        task_of(small_mnist, [run_of()], workers, lambda: frozen)


@pytest.mark.parametrize(
    "make",
    [
        lambda *parts: training.NetworkTask(*parts, model=mlp),
        lambda *parts: training.SoftmaxTask(*parts, batches=True),
        lambda *parts: training.SoftmaxTask(*parts, batches=False),
    ],
)
def test_every_agent_needs_a_sample(small_mnist, workers, make):
    with pytest.raises(BezoarError, match="partition: agent 2 holds no samples; every agent needs"):
        make(small_mnist, sizes_of((9, 9, 0, 9)), [run_of()], workers)


def test_an_average_is_taken_of_models_that_fit_the_module(small_mnist, workers):
    task = task_of(small_mnist, [run_of()], workers, normed)
    [history] = training.Engine(task, iterations=1).train()
    assert set(training.average_model(normed(), history.models, history.buffers)) == set(
        normed().state_dict()
    )
    for models in (history.models[:0], history.models[:, 1:], history.models[0]):
        with pytest.raises(BezoarError, match="models: expected those of one agent or more, with"):
            training.average_model(normed(), models, history.buffers)
    with pytest.raises(BezoarError, match=r"buffers: expected buffers\.2\.num_batches_tracked, "):
        training.average_model(normed(), history.models, {})
