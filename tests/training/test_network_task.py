"""Neural networks in Algorithm 1 against plain PyTorch."""

import numpy as np
import pytest
import torch
from small_networks import (
    AGENTS,
    BATCH,
    MODELS,
    STEP,
    Residual,
    cnn,
    deal,
    initial,
    mlp,
    pixels,
    run_of,
    task_of,
    vector_of,
)
from torch import nn
from torch.nn.functional import cross_entropy

from bezoar import BezoarError, data, networks, training
from bezoar.training import Engine, Workers

ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-11}


def near(found, expected):
    """Equal up to rounding, in units of the largest number."""
    scale = expected.abs().max().clamp(min=1)
    return bool(((found - expected).abs().max() / scale) < ROUNDING[expected.dtype])


def batch_of(task, agent, update, seed=0):
    """The samples and true labels that an agent takes: the only thing shared with the package."""
    places = task.partition.samples(agent)[task.batches.places(seed, agent, update)]
    images = pixels(task.dataset.train[places], task.dtype)
    return images, torch.from_numpy(task.dataset.train_labels[places])


def flipped(labels):
    return 9 - labels


def plain_training(task, model, agent, steps, relabel=lambda labels: labels):
    """One agent's training with ``torch.optim.SGD``."""
    module = initial(model, dtype=task.dtype)
    optimizer = torch.optim.SGD(module.parameters(), lr=STEP, momentum=0.9, weight_decay=0.01)
    for update in range(1, steps + 1):
        images, labels = batch_of(task, agent, update)
        optimizer.zero_grad()
        cross_entropy(module(images), relabel(labels)).backward()
        optimizer.step()
    return module


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_an_agent_alone_is_trained_as_torch_trains_it(small_mnist, workers, model, dtype):
    """Parameters and batch-norm statistics, for a regular and a poisoned agent, 20 steps long."""
    run = run_of("local", optimizer=training.HeavyBall(0.9), weight_decay=0.01)
    task = task_of(small_mnist, [run], workers, model, dtype=dtype)
    engine = Engine(task, iterations=20)
    state = engine.start()
    for _ in range(20):
        state = engine.step(state)
    [poisoned] = run.network.poisoned
    for agent, relabel in ((0, lambda labels: labels), (poisoned, flipped)):
        plain = plain_training(task, model, agent, 20, relabel)
        assert near(task.vectors(state.models)[0, agent], vector_of(plain))
        for name, values in plain.named_buffers():
            found = state.tensors[f"buffers.{name}"][0, agent]
            assert near(found.to(task.dtype), values.to(task.dtype)), name


@pytest.mark.parametrize("model", [mlp, cnn])
def test_the_mean_of_everyone_is_centralised_training(small_mnist, workers, model):
    """On a complete network the agents follow gradient descent on all their batches together."""
    network = networks.complete(AGENTS).with_poisoned(())
    run = run_of("mean", network=network, optimizer=training.HeavyBall(0.9), weight_decay=0.01)
    task = task_of(small_mnist, [run], workers, model)
    [history] = Engine(task, iterations=10).train()
    module = initial(model)
    optimizer = torch.optim.SGD(module.parameters(), lr=STEP, momentum=0.9, weight_decay=0.01)
    for update in range(1, 11):
        batches = [batch_of(task, agent, update) for agent in range(AGENTS)]
        images, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
        optimizer.zero_grad()
        cross_entropy(module(images), labels).backward()
        optimizer.step()
    for agent in range(AGENTS):
        assert near(history.models[agent], vector_of(module))


def gradients_of(task, state=None, update=1):
    state = state or training.State(0, task.start())
    return task.gradients(state, update, torch.empty_like(state.models))


def test_only_poisoned_agents_train_on_flipped_labels(small_mnist, workers):
    network = networks.complete(AGENTS)
    clean = task_of(small_mnist, [run_of(network=network.with_poisoned(()))], workers, Residual)
    poisoned = task_of(small_mnist, [run_of(network=network)], workers, Residual)
    same = (gradients_of(clean) == gradients_of(poisoned)).all(-1)[0]
    assert [agent for agent in range(AGENTS) if not same[agent]] == list(network.poisoned)


def test_nobody_sees_the_samples_of_others(small_mnist, workers):
    """Whatever one agent's samples are, the others' gradients are the same bits."""
    partition = deal(small_mnist)
    train = small_mnist.train.copy()
    train[partition.samples(1)] = 255 - train[partition.samples(1)]
    changed = data.Dataset(
        "changed",
        train,
        small_mnist.train_labels,
        small_mnist.test,
        small_mnist.test_labels,
        classes=10,
    )
    before, after = (
        gradients_of(task_of(samples, [run_of()], workers, Residual, partition))
        for samples in (small_mnist, changed)
    )
    same = (before == after).all(-1)[0]
    assert same.tolist() == [agent != 1 for agent in range(AGENTS)]


def test_dynamic_labels_follow_the_own_scores_on_the_batch(small_mnist, workers):
    task = task_of(small_mnist, [run_of(attack="dynamic_label_flip")], workers, cnn)
    [agent] = task.runs[0].network.poisoned
    images, _ = batch_of(task, agent, 1)
    module = initial(cnn)
    scores = module(images)
    cross_entropy(scores, scores.argmin(1)).backward()
    expected = vector_of(module, lambda parameter: parameter.grad)
    assert near(task.vectors(gradients_of(task))[0, agent], expected)
    at = task.gradients_at(*together(task))[0]
    assert not near(at[0, agent], at[0, 0])


def together(task):
    """Everyone's common model and their own ones, before training."""
    models = task.start()["models"]
    return models[:, 0], models


def test_a_batch_in_parts_is_the_whole_batch(small_mnist, workers):
    whole, parts = (
        gradients_of(task_of(small_mnist, [run_of()], workers, cnn, accumulate=parts))
        for parts in (1, 4)
    )
    assert near(parts, whole)


def test_local_steps_without_exchange_are_more_iterations(small_mnist, workers):
    """Three local steps twice are six iterations where nobody listens."""
    run = run_of("local", optimizer=training.HeavyBall(0.9))
    found = [
        Engine(
            task_of(small_mnist, [run], workers, Residual),
            iterations=iterations,
            local_steps=steps,
        ).train()[0]
        for iterations, steps in ((2, 3), (6, 1))
    ]
    assert torch.equal(found[0].models, found[1].models)


def test_local_steps_come_before_the_exchange(small_mnist, workers):
    """On a complete network the mean of models that went two steps each, not one."""
    network = networks.complete(AGENTS).with_poisoned(())
    alone, together = (
        Engine(
            task_of(small_mnist, [run_of(rule, network=network)], workers),
            iterations=1,
            local_steps=2,
        ).train()[0]
        for rule in ("local", "mean")
    )
    assert near(together.models, alone.models.mean(0).expand_as(together.models))


def bits(histories):
    return [
        (history.models.numpy().tobytes(), {n: v.tobytes() for n, v in history.metrics.items()})
        for history in histories
    ]


def engine_of(dataset, workers, threads, iterations=6):
    runs = [
        run_of(rule, attack, optimizer=training.HeavyBall(0.9), seed=seed)
        for seed, (rule, attack) in enumerate(
            [("ios", "label_flip"), ("trimmed_mean", "dynamic_label_flip"), ("mean", "sign_flip")]
        )
    ]
    task = task_of(dataset, runs, workers, Residual, threads=threads, dtype="float32")
    return Engine(task, iterations=iterations, every=2, metrics=tuple(training.METRICS))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_with_any_number_of_workers(small_mnist, threads):
    found = []
    for count in (1, 2, 3):
        with Workers(count) as pool:
            found.append(bits(engine_of(small_mnist, pool, threads).train()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_when_resumed(small_mnist, workers, threads, tmp_path):
    """Buffers, momentum and how agents are computed are part of the state."""
    path = tmp_path / "checkpoint"

    def keep(checkpoint):
        if checkpoint.iteration == 3:
            checkpoint.save(path)

    expected = bits(engine_of(small_mnist, workers, threads).train(keep=keep))
    with Workers(1) as pool:
        resumed = engine_of(small_mnist, pool, None)
        assert bits(resumed.train(start=training.Checkpoint.load(path))) == expected
        assert resumed.task.threads == threads


def test_runs_together_are_as_alone(small_mnist, workers):
    together = engine_of(small_mnist, workers, 1)
    histories = together.train()
    for run, history in zip(together.runs, histories, strict=True):
        task = task_of(small_mnist, [run], workers, Residual, dtype="float32")
        engine = Engine(task, iterations=6, every=2, metrics=("consensus_error", "test_loss"))
        [alone] = engine.train()
        assert torch.allclose(alone.models, history.models, rtol=1e-4, atol=1e-5)
        assert np.allclose(alone["test_loss"], history["test_loss"], rtol=1e-4)


def test_the_fastest_way_is_found_and_told(small_mnist, workers):
    task = task_of(small_mnist, [run_of()], workers, threads=None)
    assert task.threads is None
    state = task.start()
    assert task.threads in (1, workers.count)
    assert state["threads"].tolist() == [task.threads]


def test_tests_are_in_evaluation_mode_with_the_right_statistics(small_mnist, workers):
    """Agents with their own; the average model with those of all regular agents' samples."""
    task = task_of(small_mnist, [run_of("mean")], workers, Residual)
    engine = Engine(task, iterations=3, metrics=("accuracy", "accuracy_worst", "test_loss"))
    state = engine.start()
    for _ in range(3):
        state = engine.step(state)
    found = engine.measure(state)
    regular = list(task.runs[0].network.regular)
    images, labels = pixels(small_mnist.test), torch.from_numpy(small_mnist.test_labels)

    def tested(vector, buffers):
        module = Residual().double().eval()
        nn.utils.vector_to_parameters(vector, module.parameters())  # its output layer comes first
        module.load_state_dict(buffers, strict=False)
        with torch.no_grad():
            scores = module(images)
        return (scores.argmax(1) == labels).double().mean(), cross_entropy(scores, labels)

    vectors = task.vectors(state.models)[0]
    own = {
        name.removeprefix("buffers."): values[0]
        for name, values in state.tensors.items()
        if name.startswith("buffers.")
    }
    accuracies = [
        tested(vectors[agent], {name: values[agent] for name, values in own.items()})[0]
        for agent in regular
    ]
    assert found["accuracy_worst"].item() == min(accuracies).item()
    pooled = {}
    for part in ("before", "after"):
        means, variances = (own[f"{part}.running_{kind}"][regular] for kind in ("mean", "var"))
        pooled[f"{part}.running_mean"] = means.mean(0)
        pooled[f"{part}.running_var"] = variances.mean(0) + means.var(0, correction=0)
    accuracy, loss = tested(vectors[regular].mean(0), pooled)
    assert found["accuracy"].item() == accuracy.item()
    assert found["test_loss"].item() == pytest.approx(loss.item(), rel=1e-9)


@pytest.mark.parametrize("samples", [None, 100, 25])
def test_measured_gradients_are_means_over_local_samples(small_mnist, workers, samples):
    """Over all of them, or over some, which stay the same."""
    task = task_of(small_mnist, [run_of()], workers, cnn, gradient_samples=samples)
    gradients, costs = task.gradients_at(*together(task))
    again, _ = task.gradients_at(*together(task))
    assert torch.equal(gradients, again)
    for agent in range(AGENTS):
        held = small_mnist.train[task.partition.samples(agent)]
        labels = torch.from_numpy(small_mnist.train_labels[task.partition.samples(agent)])
        if agent in task.runs[0].network.poisoned:
            labels = flipped(labels)
        module = initial(cnn)
        cost = cross_entropy(module(pixels(held)), labels)
        cost.backward()
        expected = vector_of(module, lambda parameter: parameter.grad)
        whole = samples is None or samples >= len(held)
        assert near(task.vectors(gradients)[0, agent], expected) == whole
        assert (abs(costs[0, agent] - cost) < 1e-12) == whole


def test_measuring_leaves_the_state_alone(small_mnist, workers):
    task = task_of(small_mnist, [run_of("mean")], workers, Residual)
    engine = Engine(task, iterations=2, metrics=tuple(training.METRICS))
    state = engine.step(engine.start())
    before = {name: values.clone() for name, values in state.tensors.items()}
    engine.measure(state)
    assert all(torch.equal(values, state.tensors[name]) for name, values in before.items())


def test_the_output_layer_comes_first(small_mnist, workers):
    class Named(nn.Module):
        """Its output layer is neither the first nor the last of its parts."""

        def __init__(self):
            super().__init__()
            self.first = nn.Linear(784, 5)
            self.output = nn.Linear(5, 10)
            self.last = nn.Linear(5, 5)

        def forward(self, inputs):
            return self.output(self.last(self.first(inputs.flatten(1))))

    for model, features in ((Named, 5), (mlp, 16), (cnn, 54), (Residual, 6)):
        task = task_of(small_mnist, [run_of()], workers, model)
        module = initial(model)
        output = module.output if hasattr(module, "output") else module[-1]
        models = task.start()["models"]
        assert torch.equal(task.output_layer.of(models)[0, 0], output.weight)
        assert (task.output_layer.classes, task.output_layer.features) == (10, features)
        assert torch.equal(task.vectors(models)[0, 0], vector_of(module))


def test_the_start_follows_from_the_seed(small_mnist, workers):
    runs = [run_of(seed=1), run_of(seed=2), run_of(seed=1)]
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    models = task_of(small_mnist, runs, workers, cnn).start()["models"]
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(4)
    assert torch.equal(task_of(small_mnist, runs, workers, cnn).start()["models"], models)
    assert torch.equal(models[0], models[2])
    assert not torch.equal(models[0], models[1])
    assert torch.equal(models, models[:, :1].expand_as(models))


def test_what_tells_tasks_apart(small_mnist, workers):
    def identity(model=mlp, **options):
        return task_of(small_mnist, [run_of()], workers, model, **options).identity()

    start = {0: initial(mlp, seed=5).state_dict()}
    found = [
        identity(),
        identity(cnn),
        identity(lambda: nn.Sequential(*mlp()[:2], nn.ReLU(), nn.Linear(16, 10))),
        identity(batch=4),
        identity(order="consecutive"),
        identity(accumulate=2),
        identity(gradient_samples=10),
        identity(autocast="bfloat16"),
        identity(start=start),
        identity(partition=deal(small_mnist, how="by_class")),
    ]
    assert len(set(found)) == len(found)
    assert identity() == found[0]


def test_lower_precision_only_on_request(small_mnist, workers):
    seen = []

    class Watching(nn.Module):
        """Multiplies no matrices: some machines cannot in lower precision."""

        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(10))

        def forward(self, inputs):
            seen.append(torch.is_autocast_enabled("cpu"))
            return inputs.flatten(1)[:, :10] * self.scale

    for autocast in (None, "bfloat16"):
        task = task_of(small_mnist, [run_of()], workers, Watching, autocast=autocast)
        seen.clear()
        gradients_of(task)
        assert seen == [autocast is not None] * AGENTS


def test_buffers_that_a_module_replaces_are_kept(small_mnist, workers):
    class Counting(nn.Module):
        """Puts another tensor in the place of its buffer."""

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(784, 10)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, inputs):
            if self.training:
                self.seen = self.seen + len(inputs)
            return self.linear(inputs.flatten(1))

    engine = Engine(task_of(small_mnist, [run_of("mean")], workers, Counting), iterations=5)
    state = engine.start()
    for _ in range(5):
        state = engine.step(state)
    assert state.tensors["buffers.seen"].tolist() == [[5 * BATCH] * AGENTS]


def test_costs_to_plan_with(small_mnist):
    cost = training.NetworkTask.cost(small_mnist, 10, "float32", 1, model=mlp, batch=4)
    products = 784 * 16 + 16 * 10
    assert cost.test == 2 * products * len(small_mnist.test)
    assert cost.step == 3 * 2 * products * 10 * 4
    assert cost.gradients == 3 * 2 * products * len(small_mnist.train)
    assert cost.bytes == 3 * 4 * 10 * (products + 26)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch: expected a number of samples from 1, found 0"),
        ({"order": "sorted"}, "order: 'sorted' is not known; allowed: random, consecutive"),
        ({"accumulate": 3}, "accumulate: a batch of 8 cannot be cut into 3 equal parts"),
        ({"accumulate": 0}, "accumulate: expected a number from 1, found 0"),
        ({"gradient_samples": -1}, "gradient_samples: expected a number from 1, found -1"),
        ({"threads": 1.5}, "threads: expected a number from 1, found 1.5"),
        ({"autocast": "int8"}, "autocast: 'int8' is not known; allowed: "),
        ({"model": lambda: mlp()[:2]}, r"model: expected scores of shape \[2, 10\]"),
        ({"model": nn.Flatten}, "model: expected a module with parameters"),
        (
            {"model": lambda: nn.Sequential(nn.Dropout(0.5), mlp())},
            "model: 0 is Dropout.*global generator",
        ),
    ],
)
def test_what_cannot_be_is_refused(small_mnist, workers, options, message):
    with pytest.raises(BezoarError, match=message):
        task_of(small_mnist, [run_of()], workers, **options)


def test_features_cannot_be_augmented(small_mnist, workers):
    train, test = (part.reshape(len(part), -1) for part in (small_mnist.train, small_mnist.test))
    labels = small_mnist.train_labels, small_mnist.test_labels
    features = data.Dataset("features", train, labels[0], test, labels[1], classes=10)
    told = r"augment: needs images \[n, channels, height, width\], found \[400, 784\]"
    with pytest.raises(BezoarError, match=told):
        task_of(features, [run_of()], workers, augment=True)


def test_a_partition_for_others_is_refused(small_mnist, workers):
    with pytest.raises(BezoarError, match="partition: made for 5 agents, but the complete network"):
        task_of(small_mnist, [run_of()], workers, partition=deal(small_mnist, agents=5))
    with pytest.raises(BezoarError, match="local_steps: expected at least 1, found 0"):
        Engine(task_of(small_mnist, [run_of()], workers), iterations=1, local_steps=0)
