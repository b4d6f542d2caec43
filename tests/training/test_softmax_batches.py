"""Stochastic gradients of softmax regression against a plain formula."""

import numpy as np
import pytest
import torch
from plain_loop import design, gradient
from small_networks import deal, run_of

from bezoar import BezoarError, networks, training
from bezoar.training import SoftmaxTask, State
from bezoar.training._batches import Batches

AGENTS = 4


def task_of(dataset, runs, workers, **options):
    partition = deal(dataset, AGENTS)
    return SoftmaxTask(dataset, partition, runs, workers, dtype="float64", **options)


def gradients_of(task, models, update):
    vectors = torch.stack([task.model.unflatten(models)] * len(task.runs))
    found = task.gradients(State(0, {"models": vectors}), update, torch.empty_like(vectors))
    return found[..., : task.model.features + 1]


@pytest.mark.parametrize("order", ["random", "consecutive"])
@pytest.mark.parametrize("batch", [1, 7, 150, 2100])
def test_a_gradient_is_that_of_its_batch(small_mnist, workers, batch, order):
    """Also of batches larger than what an agent holds, for several seeds and poisoned agents."""
    runs = [run_of(seed=0), run_of(seed=1), run_of(attack="dynamic_label_flip", seed=0)]
    task = task_of(small_mnist, runs, workers, batch=batch, order=order)
    [poisoned] = runs[0].network.poisoned
    generator = torch.Generator().manual_seed(0)
    models = torch.randn(AGENTS, 7850, dtype=torch.float64, generator=generator)
    weights, biases = models[:, :7840].view(AGENTS, 10, 784), models[:, 7840:, None]
    matrices = torch.cat([weights, biases], -1).numpy()
    drawn = Batches(task.partition.sizes, batch, order)
    for update in (1, 4):
        found = gradients_of(task, models, update)
        for number, run in enumerate(runs):
            for agent in range(AGENTS):
                places = task.partition.samples(agent)[drawn.places(run.seed, agent, update)]
                samples = design(small_mnist.train[places])
                labels = small_mnist.train_labels[places]
                if agent == poisoned:
                    scores = samples @ matrices[agent].T
                    labels = scores.argmin(1) if run.attack.dynamic else 9 - labels
                expected = gradient(matrices[agent], samples, labels)
                assert np.allclose(found[number, agent].numpy(), expected, rtol=0, atol=1e-12)


def test_a_batch_of_everything_is_the_full_gradient(small_mnist, workers):
    partition = deal(small_mnist, AGENTS)
    [size] = set(partition.sizes.tolist())
    models = torch.ones(AGENTS, 7850, dtype=torch.float64)
    whole, batch = (
        gradients_of(task_of(small_mnist, [run_of()], workers, **options), models, 3)
        for options in ({}, {"batch": size})
    )
    assert torch.allclose(batch, whole, rtol=0, atol=1e-13)


def test_training_by_batches_with_one_worker_or_two(small_mnist):
    found = []
    for count in (1, 2):
        with training.Workers(count) as pool:
            runs = [run_of(rule, network=networks.complete(AGENTS)) for rule in ("ios", "median")]
            task = task_of(small_mnist, runs, pool, batch=16)
            engine = training.Engine(task, iterations=8, local_steps=2, metrics=("accuracy",))
            found.append([h.models.numpy().tobytes() for h in engine.train()])
            assert engine.train()[0]["accuracy"][-1] > 0.3
    assert found[0] == found[1]


def test_batches_are_part_of_the_identity(small_mnist, workers):
    options = ({}, {"batch": 4}, {"batch": 5}, {"batch": 4, "order": "consecutive"})
    told = {task_of(small_mnist, [run_of()], workers, **each).identity() for each in options}
    assert len(told) == 4
    with pytest.raises(BezoarError, match=r"batches: .* a batch of .* found True; allowed: False"):
        task_of(small_mnist, [run_of()], workers, batches=True, batch=4)
    with pytest.raises(BezoarError, match="batch: expected an integer of at least 1, found 0"):
        task_of(small_mnist, [run_of()], workers, batch=0)


def test_costs_count_what_is_computed(small_mnist):
    whole = SoftmaxTask.cost(small_mnist, 10, "float32")
    some = SoftmaxTask.cost(small_mnist, 10, "float32", batch=4)
    assert some.step / whole.step == 40 / len(small_mnist.train)
    assert (some.test, some.gradients) == (whole.test, whole.gradients)
