"""UBAR, which judges neighbours by their losses on samples of the agent's own."""

from math import floor

import numpy as np
import pytest
import torch
from aggregator_inputs import assert_close
from field_reference import distances, in_order, is_finite, mean_of

from bezoar import BezoarError, aggregators, attacks, data, networks, training
from bezoar.aggregators import UBAR


def loop(inputs, losses, share, own):
    """UBAR at agent 0, input by input."""
    others = {v: d for v, d in distances(inputs[0], inputs).items() if v != 0}
    near = in_order(others)[: max(1, floor(share * len(others) + 1e-9))]
    near = [v for v in near if is_finite(inputs[v]) and is_finite(inputs[0])]
    good = [v for v in near if losses[v] <= losses[0]]
    if not good and near:
        good = [min(near, key=lambda v: (losses[v], v))]
    if not good:
        return inputs[0]
    return own * inputs[0] + (1 - own) * mean_of(inputs, good)[0]


@pytest.mark.parametrize("share", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_equals_the_loop(share, scale):
    rng = np.random.default_rng(1)
    rule = UBAR(share=share, own=0.3)
    for count in (1, 2, 3, 8, 15):
        inputs = 1 + scale * rng.normal(size=(count, 6))
        inputs[count // 2 + 1 :] = inputs[count // 2 : count // 2 + 1]  # duplicates
        for losses in (rng.normal(size=count), np.ones(count), -np.arange(count) + 0.0):
            expected = loop(dict(enumerate(inputs)), losses, share, 0.3)
            if count == 1:
                expected = inputs[0]
            assert_close(rule.at(inputs, losses=losses), expected, 1e-9 * scale + 1e-15)


@pytest.mark.parametrize(("near", "neighbours"), [(13, 22), (7, 23), (3, 37), (29, 50), (7, 10)])
def test_a_share_of_the_neighbours_is_that_many(near, neighbours):
    inputs = np.arange(neighbours + 1.0)[:, None]
    rule = UBAR(share=near / neighbours, own=0.0)
    found = rule.at(inputs, losses=np.zeros(neighbours + 1))
    assert_close(found, [(near + 1) / 2], 1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_messages_that_are_not_finite_are_left_out(value):
    inputs, rule = np.random.default_rng(2).normal(size=(6, 4)), UBAR(share=1.0)
    losses = [3.0, 2.0, 1.0, 4.0, 0.0, 5.0]
    inputs[4] = value
    assert_close(
        rule.at(inputs, losses=losses), loop(dict(enumerate(inputs)), losses, 1.0, 0.5), 1e-12
    )
    assert not bool(rule.at(inputs[[4, 0, 1]], losses=[0.0, 1.0, 2.0]).isfinite().any())
    assert torch.equal(rule.at(inputs[[0, 4]], losses=[0.0, np.nan]), torch.from_numpy(inputs[0]))


def test_half_of_the_neighbours_may_send_anything():
    """Whatever their losses seem to be."""
    inputs = np.random.default_rng(3).normal(size=(9, 4))
    for poisoned in range(1, 5):
        inputs[-poisoned:] = 1e9
        assert UBAR().at(inputs, losses=[1.0] * 5 + [0.0] * 4).abs().max() < 10


def test_losses_must_be_known():
    inputs = np.zeros((3, 2))
    with pytest.raises(BezoarError, match="losses: ubar needs the loss of each of 3 inputs"):
        UBAR().at(inputs)
    with pytest.raises(BezoarError, match=r"on samples of the agent's own, found shape \[2\]"):
        UBAR().at(inputs, losses=[1.0, 2.0])
    with pytest.raises(BezoarError, match="losses: ubar needs those of every agent's inputs"):
        UBAR()(inputs, networks.complete(3))


@pytest.mark.parametrize("network", [networks.fan(6), networks.ring(40)], ids=str)
def test_in_training_losses_are_those_of_the_own_samples(small_mnist, network):
    """One iteration, against losses that are computed here with all samples of an agent."""
    rng = np.random.default_rng(0)
    partition = data.partition("iid")(small_mnist.train_labels, 10, network.agents, rng)
    most = int(partition.sizes.max())
    rule = UBAR(share=0.7, samples=most)
    run = training.Run(network, rule, attacks.create("label_flip"))
    seen = []
    with training.Workers(1) as workers:
        task = training.SoftmaxTask(small_mnist, partition, [run], workers, dtype="float64")
        engine = training.Engine(task, iterations=3)
        engine.train(observe=lambda k, sent, made: seen.append((sent.clone(), made.clone())))
    sent, made = (task.vectors(part)[0] for part in seen[-1])
    for agent in range(0, network.agents, 5):
        places = partition.samples(agent)
        samples = 2 * torch.from_numpy(small_mnist.train[places]).double().flatten(1) / 255 - 1
        labels = torch.from_numpy(np.array(small_mnist.train_labels[places])).long()
        labels = 9 - labels if agent in network.poisoned else labels
        senders = [agent, *network.neighbours(agent)]
        models = sent[senders]
        weights, biases = models[:, :7840].unflatten(1, (10, 784)), models[:, 7840:]
        scores = samples @ weights.mT + biases.unsqueeze(1)
        losses = [float(torch.nn.functional.cross_entropy(each, labels)) for each in scores]
        alone = rule.at(models, losses=losses, senders=senders)
        assert_close(alone, made[agent], 1e-12)


def test_quadratic_costs_are_judged_as_they_are():
    run = training.Run(networks.ring(5), aggregators.create("ubar"), attacks.create("label_flip"))
    with training.Workers(1) as workers:
        task = training.random_quadratics([run], workers)
        models = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        for model, loss in zip(models, task.losses(0, 2, models, 1, 1), strict=True):
            common = model.expand(1, -1)
            _, costs = task.gradients_at(common, task.start()["models"])
            assert_close(loss, costs[0, 2], 1e-12)
