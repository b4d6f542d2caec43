"""Quadratic local costs: what the engine trains, beside plain formulas."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bezoar import BezoarError, aggregators, attacks, networks, theory, training


def runs_of(rules, network):
    flip = attacks.create("label_flip")
    return [training.Run(network, aggregators.create(r), flip, training.Horizon()) for r in rules]


@pytest.fixture
def pool():
    with training.Workers(1) as workers:
        yield workers


@pytest.fixture
def random_costs(pool):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((2, 3, 4, 4))
    curvatures = root @ root.swapaxes(-1, -2)
    minima = rng.standard_normal((2, 3, 4))
    start = rng.standard_normal(4)
    runs = runs_of(["mean", "mean"], networks.complete(3, {1}))
    task = training.QuadraticTask.around(curvatures, minima, runs, pool, start)
    return curvatures, minima, start, task


def test_gradients_and_costs(random_costs):
    curvatures, minima, start, costs = random_costs
    models = costs.start()["models"]
    assert models.shape == (2, 3, 4)
    assert np.array_equal(models[1, 2], start)
    common = torch.randn(2, 4, dtype=torch.float64)
    gradients, values = costs.gradients_at(common, models)
    for run in range(2):
        for agent in range(3):
            apart = common[run].numpy() - minima[run, agent]
            slope = curvatures[run, agent] @ apart
            np.testing.assert_allclose(gradients[run, agent], slope, atol=1e-10)
            np.testing.assert_allclose(values[run, agent], 0.5 * apart @ slope, atol=1e-10)


def test_a_step_with_weight_decay(random_costs, pool):
    curvatures, minima, start, _ = random_costs
    steps, decay = [0.1, 0.2], [0.0, 0.5]
    runs = [
        replace(run, schedule=training.Constant(step), weight_decay=shrink)
        for run, step, shrink in zip(
            runs_of(["local", "local"], networks.complete(3, {1})), steps, decay, strict=True
        )
    ]
    task = training.QuadraticTask.around(curvatures, minima, runs, pool, start)
    models = [history.models for history in training.Engine(task, iterations=1).train()]
    for run in range(2):
        slope = curvatures[run, 1] @ (start - minima[run, 1]) + decay[run] * start
        np.testing.assert_allclose(models[run][1], start - steps[run] * slope, atol=1e-10)


def test_constants(random_costs):
    curvatures, minima, start, costs = random_costs
    assert costs.smoothness() == pytest.approx(np.linalg.eigvalsh(curvatures).max())
    regular = [0, 2]
    mean = curvatures[1, regular].mean(axis=0)
    pull = np.einsum("wij,wj->i", curvatures[1, regular], minima[1, regular]) / 2
    lowest = np.linalg.solve(mean, pull)

    def cost(x):
        apart = x - minima[1, regular]
        return 0.5 * np.einsum("wi,wij,wj->", apart, curvatures[1, regular], apart) / 2

    assert costs.initial_gap(1) == pytest.approx(cost(start) - cost(lowest))


@pytest.mark.parametrize(
    ("curvature", "pull", "gap"),
    [
        ([1.0, 0.0], [1.0, 1.0], np.inf),
        ([1.0, 0.0], [1.0, 0.0], 0.5),
        ([1.0, -1.0], [0.0, 0.0], np.inf),
    ],
)
def test_a_cost_that_is_not_bounded_below(pool, curvature, pull, gap):
    runs = runs_of(["mean"], networks.complete(2, {1}))
    task = training.QuadraticTask(np.diag(curvature), np.array([[pull, pull]]), runs, pool)
    assert task.initial_gap(0) == pytest.approx(gap)


@pytest.mark.parametrize("scale", [1e-20, 1e-6, 1.0, 1e6, 1e20])
def test_the_gap_of_costs_with_flat_directions(pool, scale):
    """Around minima every cost is at least zero, whatever the unit in which it is counted."""
    rng = np.random.default_rng(0)
    factors, minimum = rng.standard_normal((5, 2)), rng.standard_normal(5)
    curvature = scale * factors @ factors.T
    runs = runs_of(["mean"], networks.complete(3, {1}))
    task = training.QuadraticTask.around(curvature, np.tile(minimum, (1, 3, 1)), runs, pool)
    expected = 0.5 * minimum @ curvature @ minimum
    assert task.initial_gap(0) == pytest.approx(expected, rel=1e-9, abs=0)


def test_random_quadratics_differ_between_runs_only_at_poisoned_agents(pool):
    network = networks.complete(6)
    runs = runs_of(["mean"], network) + runs_of(["mean"], network.with_poisoned({1, 5}))
    options = {"size": 4, "smoothness": 2.0, "convexity": 0.5, "seed": 3}
    costs = training.random_quadratics(runs, pool, **options)
    assert costs.smoothness() == pytest.approx(2.0)
    common = torch.zeros(2, 4, dtype=torch.float64)
    gradients, _ = costs.gradients_at(common, costs.start()["models"])
    same = (gradients[0] == gradients[1]).all(-1).tolist()
    assert same == [True, False, True, True, True, True]
    # Agent 5 is poisoned in both, 1 in the second alone: its minimum is on the other side of zero.
    np.testing.assert_allclose(gradients[1, 1], -gradients[0, 1])
    again = training.random_quadratics(runs[:1], pool, **options)
    alone, _ = again.gradients_at(common[:1], again.start()["models"])
    assert torch.equal(alone[0], gradients[0])


def test_alike_quadratics_have_one_heterogeneity(pool):
    runs = runs_of(["weighted_mean"], networks.complete(6))
    metrics = ("heterogeneity", "disturbance")
    task = training.random_quadratics(runs, pool, alike=True)
    [history] = training.Engine(task, iterations=20, metrics=metrics).train()
    for name in metrics:
        np.testing.assert_allclose(history[name], history[name][0], rtol=1e-9)


@pytest.mark.parametrize("rule", ["trimmed_mean", "faba", "ios"])
@pytest.mark.parametrize(("R", "P"), [(4, 4), (7, 5), (4, 5), (5, 2)])
def test_the_engine_cannot_tell_the_instances_of_theorem_3_apart(pool, rule, R, P):
    instances = theory.lower_bound_instances(R, P, 2.0, 3.0, 1.5)
    found = []
    for instance in (0, 1):
        runs = runs_of([rule], instances.network)
        curvature = instances.smoothness * np.eye(2)
        pulls = -instances.gradients(instance, np.zeros((instances.network.agents, 2)))
        pulls = np.broadcast_to(pulls, (len(runs), *pulls.shape))
        task = training.QuadraticTask(curvature, pulls, runs, pool, start=[0.3, -0.8])
        metrics = ("gradient_norm", "training_loss")
        [history] = training.Engine(task, iterations=30, metrics=metrics).train()
        lowest = history["training_loss"][0] - task.initial_gap(0)
        assert lowest == pytest.approx(instances.infimum(instance))
        found.append(history)
    regular = list(instances.network.regular)
    first, second = (history.models[regular] for history in found)
    assert torch.allclose(first, second, atol=1e-12)
    worse = max(float(history["gradient_norm"][1:].mean()) for history in found)
    assert worse >= instances.sharp_bound * (1 - 1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pulls": np.zeros((2, 3))}, r"pulls: expected the shape \[runs, agents, D\]"),
        ({"curvatures": np.eye(3)}, "curvatures: expected a shape that broadcasts to"),
        ({"curvatures": [[0.0, 1.0], [0.0, 0.0]]}, "curvatures: expected symmetric"),
        ({"curvatures": np.full((2, 2), np.nan)}, "curvatures: expected finite numbers"),
        ({"constants": np.zeros(5)}, "constants: expected a shape that broadcasts to"),
        ({"start": [0.0]}, "start: expected 2 numbers"),
    ],
)
def test_costs_that_cannot_be_are_refused(pool, change, message):
    arguments = {"curvatures": np.eye(2), "pulls": np.zeros((1, 3, 2))} | change
    runs = runs_of(["mean"], networks.complete(3, ()))
    with pytest.raises(BezoarError, match=message):
        training.QuadraticTask(**arguments, runs=runs, workers=pool)


def test_quadratics_that_cannot_be_are_refused(pool):
    runs = runs_of(["mean"], networks.complete(3, ()))
    with pytest.raises(BezoarError, match="convexity: expected 0 < convexity ≤ smoothness"):
        training.random_quadratics(runs, pool, convexity=2.0)
    with pytest.raises(BezoarError, match="runs: at least one"):
        training.random_quadratics([], pool)
    with pytest.raises(BezoarError, match="size: expected an integer of at least 1, found 0"):
        training.random_quadratics(runs, pool, size=0)
    with pytest.raises(BezoarError, match="minima: expected the shape"):
        training.QuadraticTask.around(np.eye(2), np.zeros(2), runs, pool)
    with pytest.raises(BezoarError, match="pulls: expected 1 runs of 3 agents"):
        training.QuadraticTask(np.eye(2), np.zeros((2, 3, 2)), runs, pool)
