"""Theorem 3: Algorithm 1 cannot tell the two instances apart and fails in one of them."""

from math import sqrt

import numpy as np
import pytest
import torch

from bezoar import BezoarError, aggregators, theory

MAJORITY_DOMINANT = ["trimmed_mean", "faba", "ios"]
ITERATIONS = 12

MAIN = [(R, P) for R in range(4, 13) for P in range(4, R - R % 2 + 1)]
DUMMIES = [(R, P) for R in range(4, 9) for P in range(R - R % 2 + 1, 2 * R - 2 - R % 2)]
ALL_TO_ALL = [(2, 1), (3, 1), (3, 2)] + [(R, P) for R in range(4, 9) for P in (1, 2, 3)]


def train(rule, instances, steps):
    """Algorithm 1 on both instances at once: the models [steps, 2, W, 2] after each iteration."""
    network = instances.network
    start = np.array([0.3, -0.8])
    models = np.tile(start, (2, network.agents, 1))
    history = []
    for step in steps:
        gradients = np.stack([instances.gradients(t, models[t]) for t in (0, 1)])
        sent = torch.from_numpy(models - step * gradients)
        models = rule(sent, network).numpy()
        history.append(models)
    return np.stack(history)[:, :, list(network.regular)]


def errors(instances, models):
    """The mean squared gradient norm of both instances."""
    average = models.mean(axis=2)
    return [(instances.global_gradient(t, average[:, t]) ** 2).sum(axis=-1).mean() for t in (0, 1)]


def check(rule, R, P, steps):
    instances = theory.lower_bound_instances(R, P, 2.0, 3.0, 1.5)
    models = train(aggregators.create(rule), instances, steps)
    np.testing.assert_allclose(models[:, 0], models[:, 1], atol=1e-12)
    assert max(errors(instances, models)) >= instances.sharp_bound * (1 - 1e-12)
    return instances


@pytest.mark.parametrize("rule", MAJORITY_DOMINANT)
@pytest.mark.parametrize(("R", "P"), MAIN)
def test_main_construction(rule, R, P):
    instances = check(rule, R, P, [1 / sqrt(ITERATIONS)] * ITERATIONS)
    assert instances.variant == "main"
    assert instances.delta_max == pytest.approx(2 / (R + 2))
    assert instances.bound == pytest.approx(instances.delta_max**2 * 2.0**2 / 8)


@pytest.mark.parametrize("rule", MAJORITY_DOMINANT)
@pytest.mark.parametrize(("R", "P"), DUMMIES)
def test_dummies(rule, R, P):
    instances = check(rule, R, P, 0.5 / np.sqrt(np.arange(1, ITERATIONS + 1)))
    extra = P - (R - R % 2)
    assert instances.variant == "dummies"
    assert len(instances.dummies) == extra
    assert instances.delta_max == pytest.approx((2 + extra) / (R + 2 + extra))
    assert instances.constant == pytest.approx(0.5 / (2 + extra) ** 2)


@pytest.mark.parametrize("rule", MAJORITY_DOMINANT)
@pytest.mark.parametrize(("R", "P"), ALL_TO_ALL)
def test_all_to_all(rule, R, P):
    instances = check(rule, R, P, [0.4] * ITERATIONS)
    assert instances.variant == "all_to_all"
    assert len(instances.switched) == 1
    assert instances.delta_max == pytest.approx(P / (R + P))
    assert instances.constant == pytest.approx(1 / (8 * P**2))


@pytest.mark.parametrize(("R", "P"), MAIN + DUMMIES + ALL_TO_ALL)
def test_the_instances_satisfy_the_assumptions(R, P):
    xi, A, L = 2.0, 3.0, 1.5
    instances = theory.lower_bound_instances(R, P, xi, A, L)
    network, rng = instances.network, np.random.default_rng(R)
    model = rng.standard_normal(2)
    everywhere = np.tile(model, (network.agents, 1))
    difference = []
    for t in (0, 1):
        gradients = instances.gradients(t, everywhere)
        regular, poisoned = list(network.regular), list(network.poisoned)
        mean = gradients[regular].mean(axis=0)
        np.testing.assert_allclose(instances.global_gradient(t, model), mean)
        assert np.linalg.norm(gradients[regular] - mean, axis=1).max() <= xi
        assert np.linalg.norm(gradients[poisoned] - mean, axis=1).max() <= A
        lowest = -instances.global_gradient(t, np.zeros(2)) / L
        at = instances.costs(t, np.tile(lowest, (network.agents, 1)))[regular].mean()
        assert instances.infimum(t) == pytest.approx(at)
        np.testing.assert_allclose(instances.global_gradient(t, lowest), 0, atol=1e-12)
        difference.append(mean)
        step = 1e-6
        for axis in (0, 1):
            moved = everywhere + step * np.eye(2)[axis]
            slope = (instances.costs(t, moved) - instances.costs(t, everywhere)) / step
            np.testing.assert_allclose(slope, gradients[:, axis], atol=1e-5)
    # The constant is the distance of the two gradients, no more and no less.
    square = np.sum((difference[0] - difference[1]) ** 2)
    assert instances.bound == pytest.approx(square / 8)


@pytest.mark.parametrize(("R", "P"), MAIN + DUMMIES)
def test_switched_agents_share_no_poisoned_neighbour_but_dummies(R, P):
    instances = theory.lower_bound_instances(R, P)
    network = instances.network
    first, second = (set(network.neighbours(agent)) for agent in instances.switched)
    assert first & second & set(network.poisoned) == set(instances.dummies)
    labels = instances.labels
    assert {w for w in range(network.agents) if labels[1][w] == 2} == set(instances.switched)
    marked = set(network.poisoned) - set(instances.dummies)
    assert {w for w in range(network.agents) if labels[0][w] == 2} == marked


@pytest.mark.parametrize("rule", ["centered_clipping", "clipped_gossip", "weighted_mean"])
@pytest.mark.parametrize(("R", "P"), [(4, 4), (7, 5), (12, 12)])
def test_rules_that_are_not_majority_dominant_tell_the_instances_apart(rule, R, P):
    instances = theory.lower_bound_instances(R, P)
    models = train(aggregators.create(rule), instances, [0.3] * ITERATIONS)
    assert np.abs(models[:, 0] - models[:, 1]).max() > 1e-3


def test_a_smaller_heterogeneity_or_disturbance_rules():
    small = theory.lower_bound_instances(4, 4, heterogeneity=0.5, disturbance=2.0)
    same = theory.lower_bound_instances(4, 4, heterogeneity=9.0, disturbance=0.5)
    assert small.magnitude == same.magnitude == 0.5
    assert small.bound == same.bound


@pytest.mark.parametrize(
    ("R", "P", "allowed"), [(2, 2, 1), (3, 3, 2), (4, 6, 5), (5, 7, 6), (6, 10, 9)]
)
def test_no_regular_majority_is_refused(R, P, allowed):
    with pytest.raises(BezoarError, match=rf"poisoned: .* from 1 to {allowed}, found {P}"):
        theory.lower_bound_instances(R, P)
    instances = theory.lower_bound_instances(R, allowed)
    assert instances.delta_max < 0.5


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("regular", {"regular": 1, "poisoned": 1}),
        ("heterogeneity", {"regular": 4, "poisoned": 4, "heterogeneity": 0}),
        ("smoothness", {"regular": 4, "poisoned": 4, "smoothness": -1.0}),
    ],
)
def test_numbers_that_cannot_be_are_refused(field, arguments):
    with pytest.raises(BezoarError, match=f"{field}: expected"):
        theory.lower_bound_instances(**arguments)
    with pytest.raises(BezoarError, match="instance: expected 0 or 1, found 2"):
        theory.lower_bound_instances(4, 4).infimum(2)
