"""Where agents start: at given weights, or where the seed says."""

import numpy as np
import pytest
import torch
from plain_loop import design
from small_networks import AGENTS, BATCH, Residual, deal, initial, run_of, task_of, vector_of
from torch import nn

from bezoar import BezoarError, networks, training
from bezoar.training import Engine, SoftmaxTask, average_model

D = 7850


def trained(seed):
    """A module whose batch norm has statistics, as a state dict."""
    module = initial(Residual, seed)
    images = torch.randn(5, 1, 28, 28, generator=torch.Generator().manual_seed(seed)).double()
    module(images)
    return module.state_dict()


def softmax_task(dataset, runs, workers, **options):
    return SoftmaxTask(dataset, deal(dataset), runs, workers, dtype="float64", **options)


def vector(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(7850, dtype=torch.float64, generator=generator) / 28


def test_a_network_starts_at_the_given_state_dict(small_mnist, workers):
    """Its parameters and its statistics, for each seed its own; others may be given too."""
    runs = [run_of(seed=seed) for seed in (3, 4, 3)]
    given = {seed: trained(seed) for seed in (1, 3, 4)}
    task = task_of(small_mnist, runs, workers, Residual, start=given)
    state = task.start()
    for number, run in enumerate(runs):
        module = Residual().double()
        module.load_state_dict(given[run.seed])
        for agent in range(AGENTS):
            found = task.vectors(state["models"])[number, agent]
            assert torch.equal(found, vector_of(module))
            for name, values in module.named_buffers():
                assert torch.equal(state[f"buffers.{name}"][number, agent], values)


def test_what_was_trained_can_be_gone_on_with(small_mnist, workers):
    """The average model as a state dict is what a training that starts from it is measured at."""
    metrics, run = ("accuracy", "test_loss"), run_of("mean")
    task = task_of(small_mnist, [run], workers, Residual)
    [before] = Engine(task, iterations=3, metrics=metrics).train()
    regular = list(run.network.regular)
    buffers = {name: values[regular] for name, values in before.buffers.items()}
    kept = average_model(Residual().double(), before.models[regular], buffers)
    assert list(kept) == list(Residual().state_dict())
    on = task_of(small_mnist, [run], workers, Residual, start={0: kept})
    [history] = Engine(on, iterations=0, metrics=metrics).train()
    for name in metrics:
        assert history[name][0] == pytest.approx(before[name][-1], rel=1e-9)


def test_softmax_regression_starts_at_zero_or_at_the_given_vector(small_mnist, workers):
    runs = [run_of(seed=seed) for seed in (3, 4, 3)]
    task = softmax_task(small_mnist, runs, workers)
    assert not task.start()["models"].any()
    task = softmax_task(small_mnist, runs, workers, start={seed: vector(seed) for seed in (3, 4)})
    models = task.start()["models"]
    found = task.vectors(models)
    for number, run in enumerate(runs):
        assert torch.equal(found[number], vector(run.seed).expand(AGENTS, -1))
    assert not models[..., 785:].any()


def test_both_tasks_train_the_same_model_from_the_same_start(small_mnist, workers):
    """A linear layer of torch is softmax regression: with batches, momentum and weight decay."""

    def linear():
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

    run = run_of("trimmed_mean", optimizer=training.HeavyBall(0.9), weight_decay=0.01, seed=2)
    start = vector(2)
    weights = {"1.weight": start[:7840].view(10, 784), "1.bias": start[7840:]}
    tasks = [
        softmax_task(small_mnist, [run], workers, batch=BATCH, start={2: start}),
        task_of(small_mnist, [run], workers, linear, start={2: weights}),
    ]
    metrics = ("accuracy", "test_loss", "consensus_error")
    histories = [Engine(task, iterations=10, metrics=metrics).train()[0] for task in tasks]
    softmax, network = histories
    torch.testing.assert_close(softmax.models, network.models, rtol=1e-9, atol=1e-11)
    for name in metrics:
        np.testing.assert_allclose(softmax[name], network[name], rtol=1e-8, atol=1e-12)


def test_the_gap_at_the_start(small_mnist, workers):
    """Another start has another cost, above the same lowest one."""
    network = networks.complete(AGENTS)
    runs = [run_of(network=network, seed=seed) for seed in (0, 1)]
    start = {0: torch.zeros(D, dtype=torch.float64), 1: vector(1)}
    task = softmax_task(small_mnist, runs, workers, start=start)
    costs = []
    for agent in network.regular:
        held = task.partition.samples(agent)
        rows = np.hstack([vector(1)[:7840].view(10, 784).numpy(), vector(1)[7840:, None].numpy()])
        scores = design(small_mnist.train[held]) @ rows.T
        own = scores[np.arange(len(held)), small_mnist.train_labels[held]]
        costs.append(np.mean(np.log(np.exp(scores).sum(1)) - own))
    at_zero, elsewhere = (task.initial_gap(run) for run in (0, 1))
    assert elsewhere - at_zero == pytest.approx(np.mean(costs) - np.log(10), rel=1e-9)
    assert softmax_task(small_mnist, runs, workers).initial_gap(1) == at_zero


def test_the_start_is_part_of_the_identity(small_mnist, workers):
    def softmax(**options):
        return softmax_task(small_mnist, [run_of()], workers, **options).identity()

    told = {softmax(), *(softmax(start={0: vector(seed)}) for seed in (1, 2))}
    assert len(told) == 3
    assert softmax(start={0: vector(1), 9: vector(2)}) == softmax(start={0: vector(1)})

    def network(start):
        return task_of(small_mnist, [run_of()], workers, Residual, start=start).identity()

    other_statistics = trained(0) | {"before.running_mean": torch.ones(6)}
    told = {network(None), network({0: trained(0)}), network({0: other_statistics})}
    assert len(told) == 3


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({}, "start: expected one for the seed 0 of a run, found seeds none"),
        ({3: {}, 4: {}}, "start: expected one for the seed 0 of a run, found seeds 3, 4"),
        ({0: {}}, "start: what is given for seed 0 does not fit the model; missing: output.weight"),
        (
            {0: trained(0) | {"output.bias": torch.full((10,), torch.inf)}},
            "start: what is given for seed 0 does not fit the model; not finite: output.bias",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(small_mnist, workers, start, message):
    with pytest.raises(BezoarError, match=message):
        task_of(small_mnist, [run_of()], workers, Residual, start=start)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({1: torch.zeros(D)}, "start: expected one for the seed 0 of a run, found seeds 1"),
        ({0: torch.zeros(2)}, r"start: expected 7850 finite numbers for seed 0, found 2 .* \[2\]"),
        ({0: torch.full((D,), torch.nan)}, "start: expected 7850 finite numbers .* found 0 finite"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(small_mnist, workers, start, message):
    with pytest.raises(BezoarError, match=message):
        softmax_task(small_mnist, [run_of()], workers, start=start)
