"""Sizes at the edge of what there is: few agents, few samples, few classes, one huge hub."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_variants import VariantLoop
from setting import Setting

from bezoar import BezoarError, aggregators, attacks, data, networks, training


def blobs(samples, classes=3, features=5, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % classes
    return data.Dataset(
        "blobs",
        rng.normal(size=(samples, features)) + labels[:, None],
        labels,
        rng.normal(size=(6, features)),
        np.arange(6) % classes,
        classes,
    )


def problem_on(dataset, agents, iterations=3, **fields):
    rng = np.random.default_rng(1)
    deal = data.partition("iid")(dataset.train_labels, dataset.classes, agents, rng)
    return Setting(dataset, deal, iterations, 1, **fields)


def run_of(network, rule, attack="label_flip"):
    return training.Run(network, aggregators.create(rule), attacks.create(attack))


def agrees_with_the_loop(problem, run, workers):
    [history] = problem.engine([run], workers).train()
    loop = VariantLoop(problem, run)
    for iteration in range(1, problem.iterations + 1):
        loop.step(iteration)
    expected = np.stack([loop.vector(model) for model in loop.models])
    assert np.abs(history.models.numpy() - expected).max() <= 1e-5 * np.abs(expected).max()
    return history


#: Rules that the loop knows: not those by losses of inputs and by sums of updates.
KNOWN = [name for name in aggregators.AGGREGATORS if name not in ("ubar", "foolsgold")]


@pytest.mark.parametrize("rule", KNOWN)
def test_two_agents(workers, rule):
    network = networks.complete(2, 0)
    agrees_with_the_loop(problem_on(blobs(12), 2), run_of(network, rule), workers)


def test_two_agents_one_poisoned(workers):
    problem, network = problem_on(blobs(12), 2), networks.complete(2, 1)
    agrees_with_the_loop(problem, run_of(network, "faba"), workers)
    with pytest.raises(BezoarError, match="trimmed_mean: impossible at agent 0"):
        problem.engine([run_of(network, "trimmed_mean")], workers)


#: Attacks on labels alone: these samples are no images.
ON_LABELS = [n for n, kind in attacks.ATTACKS.items() if not kind.lies and not kind.triggers]


@pytest.mark.parametrize("attack", ON_LABELS)
def test_one_sample_an_agent(workers, attack):
    problem = problem_on(blobs(7), 7)
    agrees_with_the_loop(problem, run_of(networks.ring(7), "ios", attack), workers)


# Rules that need inner products go one way; one of them shows that its memory suffices.
@pytest.mark.parametrize(
    ("rule", "agents"),
    [
        ("weighted_mean", 10_001),
        ("median", 10_001),
        ("faba", 4_001),
        ("ios", 2_001),
        ("clipped_gossip", 2_001),
    ],
)
def test_a_star_of_many_leaves(workers, rule, agents):
    """One neighbourhood is as large as the network; the others have two inputs."""
    network = networks.star(agents, {5})
    problem = problem_on(
        blobs(agents), agents, iterations=1, metrics=("consensus_error",), dtype="float32"
    )
    engine = problem.engine([run_of(network, rule)], workers)
    state = engine.start()
    seen = []
    engine.step(state, lambda _, sent, made: seen.append((sent.clone(), made.clone())))
    sent, models = (part.flatten(2)[0].double() for part in seen[0])
    assert torch.isfinite(models).all()
    weights = torch.from_numpy(network.mixing()[[0]].toarray()).T
    if rule == "median":
        expected = sent.median(0).values
    elif rule == "faba":
        apart = (sent - sent.mean(0)).norm(dim=1)
        expected = sent[apart != apart.max()].mean(0)
    elif rule == "ios":
        apart = (sent - (weights * sent).sum(0)).norm(dim=1)
        kept = (apart != apart.max()).unsqueeze(-1) * weights
        expected = (kept * sent).sum(0) / kept.sum()
    elif rule == "clipped_gossip":
        apart = sent - sent[0]
        shrink = (0.03 / apart.norm(dim=1, keepdim=True)).clamp(max=1).nan_to_num(nan=1)
        expected = sent[0] + (weights * shrink * apart).sum(0)
    else:
        expected = (weights * sent).sum(0)
    assert torch.allclose(models[0], expected, atol=1e-6)


def test_many_agents_as_few(workers):
    """Batches of agents and agent by agent give the same, for static and dynamic labels."""
    dataset = blobs(120)
    for attack in ("random_labels", "dynamic_label_flip"):
        results = []
        for batches in (False, True):
            problem = problem_on(dataset, 9, iterations=5, batches=batches)
            runs = [run_of(networks.ring(9, 2), rule, attack) for rule in ("ios", "median")]
            results.append(problem.engine(runs, workers).train())
        for few, many in zip(*results, strict=True):
            assert torch.allclose(few.models, many.models, rtol=0, atol=1e-11)
            # Whom a median listens to hangs on the last digit where values are equal.
            for name in set(training.METRICS) - {"poison_share"}:
                assert np.allclose(few[name], many[name], rtol=1e-10, equal_nan=True), name


@pytest.mark.parametrize("batches", [False, True])
def test_images_are_learned_as_their_pixels_in_a_row(small_mnist, workers, batches):
    rows = replace(
        small_mnist,
        train=small_mnist.train.reshape(-1, 784),
        test=small_mnist.test.reshape(-1, 784),
    )
    run = run_of(networks.fan(10, 1), "ios", "label_flip")
    found = []
    for dataset in (small_mnist, rows):
        problem = problem_on(dataset, 10, iterations=4, batches=batches, dtype="float32")
        [history] = problem.engine([run], workers).train()
        found.append((history.models.numpy().tobytes(), history["accuracy"].tolist()))
    assert found[0] == found[1]
