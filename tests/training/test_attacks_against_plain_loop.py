"""Attacks that choose labels anew, that last for a while or are two, against a plain loop."""

import numpy as np
import pytest
import torch
from plain_loop import design, gradient
from plain_variants import VariantLoop
from setting import TWO_CASTLE
from small_networks import gradients_of, run_of, task_of

from bezoar import BezoarError, aggregators, attacks, data, networks, training
from bezoar.training import Checkpoint, Run, SoftmaxTask, State, Workers
from bezoar.training._batches import Batches

ITERATIONS = 5
STEP = 0.005

ATTACKS = [
    attacks.LabelFlip(0.7, from_iteration=2, until=3),
    attacks.DynamicLabelFlip(from_iteration=3),
    attacks.DynamicLabelFlip(0.6, judge="average", until=4),
    attacks.WorstLabels(),
    attacks.WorstLabels(0.5, knows="own", from_iteration=2),
    attacks.SignFlip(1.5, from_iteration=2, until=4),
    attacks.Backdoor(0.7, target=3, size=5),
    attacks.Backdoor(target=1, until=3),
    attacks.create("next_class+sign_flip", share=0.3, scale=0.5, fraction=0.5, until=4),
    attacks.create("worst_labels+sign_flip", broadcast=False, from_iteration=2),
]

#: Everything that depends on the labels of an iteration.
METRICS = ("gradient_norm", "heterogeneity", "disturbance", "training_loss", "backdoor_success")


@pytest.fixture(scope="module")
def judged(problem):
    """Runs with every attack, and what the plain loop makes of each."""
    setting = problem(iterations=ITERATIONS, every=1, metrics=METRICS)
    rules = [aggregators.WeightedMean(), aggregators.IOS()]
    runs, loops = [], []
    for place, attack in enumerate(ATTACKS):
        run = Run(TWO_CASTLE, rules[place % 2], attack, training.Constant(STEP), seed=place % 3)
        loop = VariantLoop(setting, run)
        measured = [loop.metrics()]
        for iteration in range(1, ITERATIONS + 1):
            loop.step(iteration)
            measured.append(loop.metrics())
        runs.append(run)
        loops.append((np.stack([loop.vector(model) for model in loop.models]), measured))
    return setting, runs, loops


@pytest.mark.parametrize("batches", [False, True], ids=["agent by agent", "agents in batches"])
def test_the_engine_gives_what_the_plain_loop_gives(judged, workers, tmp_path, batches):
    """And the same bits on one thread from a checkpoint within the attacks' windows."""
    setting, runs, loops = judged
    path = tmp_path / "checkpoint"

    def engine(pool):
        task = SoftmaxTask(
            setting.dataset, setting.partition, runs, pool, "float64", batches=batches
        )
        return training.Engine(task, iterations=ITERATIONS, metrics=METRICS)

    def keep(checkpoint):
        if checkpoint.iteration == 2:
            checkpoint.save(path)

    histories = engine(workers).train(keep=keep)
    for run, history, (models, measured) in zip(runs, histories, loops, strict=True):
        size = np.abs(models).max()
        assert np.abs(history.models.numpy() - models).max() <= 1e-10 * size, run.attack
        for name in METRICS:
            expected = [metrics[name] for metrics in measured]
            np.testing.assert_allclose(
                history[name], expected, 1e-8, 1e-12, err_msg=f"{run} {name}"
            )
    with Workers(1) as pool:
        again = engine(pool).train(start=Checkpoint.load(path))
    for one, other in zip(again, histories, strict=True):
        assert one.models.numpy().tobytes() == other.models.numpy().tobytes()
        assert all(one[name].tobytes() == other[name].tobytes() for name in METRICS)


def all_labels(samples, classes):
    """``[classes ** samples, samples]`` every labelling."""
    return np.stack(np.meshgrid(*[range(classes)] * samples), -1).reshape(-1, samples)


@pytest.mark.parametrize("knows", ["everything", "own"])
@pytest.mark.parametrize("seed", range(3))
def test_no_labels_oppose_the_gradient_more(workers, knows, seed):
    """Of all labels that a poisoned agent's six samples can have."""
    rng = np.random.default_rng(seed)
    agents, held, classes, features = 4, 6, 3, 5
    x = rng.normal(size=(agents * held, features))
    y = rng.integers(0, classes, len(x))
    y[:classes] = range(classes)
    dataset = data.Dataset("normal", x, y, x, y, classes=classes)
    partition = data.Partition(np.arange(len(x)), np.arange(agents + 1) * held)
    network = networks.complete(agents, {agents - 1})
    run = Run(network, aggregators.Mean(), attacks.WorstLabels(knows=knows))
    task = SoftmaxTask(dataset, partition, [run], workers, "float64")
    models = rng.normal(size=(agents, classes, features + 1))
    flat = np.concatenate([models[..., :-1].reshape(agents, -1), models[..., -1]], 1)
    state = State(0, {"models": task.model.unflatten(torch.from_numpy(flat)).unsqueeze(0)})
    found = task.gradients(state, 1, torch.empty_like(state.models))[0, -1].numpy()

    samples = design(x).reshape(agents, held, -1)
    true = y.reshape(agents, held)
    average = models[:-1].mean(0)
    against = np.mean([gradient(average, samples[w], true[w]) for w in range(agents - 1)], axis=0)
    if knows == "own":
        against = gradient(models[-1], samples[-1], true[-1])
    inner = [
        (gradient(models[-1], samples[-1], labels) * against).sum()
        for labels in all_labels(held, classes)
    ]
    opposed = (found[:, : features + 1] * against).sum()
    # Classes that are equal up to a hundred-thousandth of the range count as the same.
    assert opposed <= min(inner) + 1e-5 * (max(inner) - min(inner))


@pytest.mark.parametrize("batch", [5, 200])
def test_worst_labels_of_batches_are_those_of_the_full_gradient(small_mnist, workers, batch):
    """The regular gradient is over all samples, whatever the batch."""
    network = networks.complete(4, {3})
    run = Run(network, aggregators.Mean(), attacks.WorstLabels())
    partition = data.partition("iid")(small_mnist.train_labels, 10, 4, np.random.default_rng(0))
    task = SoftmaxTask(small_mnist, partition, [run], workers, "float64", batch=batch)
    state = State(0, task.start())
    found = task.gradients(state, 1, torch.empty_like(state.models))[0, 3, :, :785].numpy()
    x = [design(small_mnist.train[partition.samples(w)]) for w in range(4)]
    y = [small_mnist.train_labels[partition.samples(w)] for w in range(4)]
    zero = np.zeros((10, 785))
    against = np.mean([gradient(zero, x[w], y[w]) for w in range(3)], axis=0)
    places = Batches(partition.sizes, batch, "random").places(0, 3, 1)
    mine = x[3][places]
    np.testing.assert_allclose(
        found, gradient(zero, mine, (mine @ against.T).argmax(1)), atol=1e-12
    )


def test_networks_attack_in_their_window_and_by_the_average(small_mnist, workers):
    runs = [
        run_of(),
        run_of(attack="dynamic_label_flip"),
        training.Run(networks.complete(4), aggregators.Mean(), attacks.LabelFlip(from_iteration=2)),
        training.Run(
            networks.complete(4), aggregators.Mean(), attacks.DynamicLabelFlip(judge="average")
        ),
    ]
    [poisoned] = runs[0].network.poisoned
    task = task_of(small_mnist, runs, workers)
    start = task.start()
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(start["models"].shape[1:], dtype=torch.float64, generator=generator)
    start["models"] += 0.3 * noise
    flips, own, later, average = gradients_of(task, State(0, start))[:, poisoned]
    assert not torch.equal(later, flips)
    assert torch.equal(gradients_of(task, State(1, start))[2, poisoned], flips)
    assert not torch.equal(average, own)
    # With the average model as its own, an agent chooses the same labels by itself.
    same = dict(start)
    regular = [w for w in range(4) if w != poisoned]
    same["models"] = start["models"].clone()
    same["models"][1, poisoned] = start["models"][3, regular].mean(0)
    same["models"][3, poisoned] = start["models"][3, regular].mean(0)
    _, own, _, average = gradients_of(task, State(0, same))[:, poisoned]
    torch.testing.assert_close(average, own)


@pytest.mark.parametrize("batch", [8, None])
def test_networks_see_the_patch_as_softmax_regression_does(small_mnist, workers, batch):
    """One linear layer as a network; batches of everything are full gradients."""
    attack = attacks.Backdoor(0.6, target=2)
    run = training.Run(networks.complete(4), aggregators.Mean(), attack)
    metrics = ("backdoor_success", "accuracy", "disturbance")
    partition = data.partition("iid")(small_mnist.train_labels, 10, 4, np.random.default_rng(0))
    described = (small_mnist, partition, [run], workers)
    linear = training.NetworkTask(
        *described,
        model=lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)),
        batch=batch or 100,
        dtype="float64",
        threads=1,
    )
    start = torch.cat([part.flatten() for part in initial_of(linear)])
    softmax = SoftmaxTask(*described, "float64", batch=batch, start={0: start})
    one, other = (
        training.Engine(task, iterations=3, metrics=metrics).train()[0]
        for task in (linear, softmax)
    )
    np.testing.assert_allclose(one.models, other.models, atol=1e-12)
    for name in metrics:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9)


def initial_of(task):
    """The weight and the bias that everyone starts with."""
    vector = task.start()["models"][0, 0]
    return vector[:7840], vector[7840:]


def test_networks_have_no_worst_labels(small_mnist, workers):
    run = training.Run(networks.complete(4), aggregators.Mean(), attacks.WorstLabels())
    with pytest.raises(BezoarError, match="worst_labels: it takes full gradients"):
        task_of(small_mnist, [run], workers)
