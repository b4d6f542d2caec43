"""What agents that train neural networks know, keep and are refused."""

from functools import partial

import pytest
import torch
from small_networks import (
    AGENTS,
    BATCH,
    Residual,
    cnn,
    deal,
    gradients_of,
    initial,
    mlp,
    near,
    run_of,
    task_of,
    vector_of,
)
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from bezoar import BezoarError, data, networks, training
from bezoar.training import Engine


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


def test_a_batch_in_parts_is_the_whole_batch(small_mnist, workers):
    whole, parts = (
        gradients_of(task_of(small_mnist, [run_of()], workers, cnn, accumulate=parts))
        for parts in (1, 4)
    )
    assert near(parts, whole)


def test_agents_agree_before_they_are_trained(small_mnist, workers):
    """All agents start at one model, however its average over the agents is rounded."""
    task = task_of(small_mnist, [run_of()], workers, Residual, dtype="float32")
    metrics = ("consensus_error", "variance_norm")
    history = Engine(task, iterations=1, metrics=metrics).train()[0]
    for metric in metrics:
        start, trained = history[metric]
        assert start == 0 < trained


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


class Pair(nn.Module):
    """Gives its scores twice."""

    def __init__(self):
        super().__init__()
        self.inner = mlp()

    def forward(self, inputs):
        return self.inner(inputs), self.inner(inputs)


class Noise(nn.Module):
    """Draws random numbers without a layer that is known for it."""

    def forward(self, inputs):
        return nn.functional.dropout(inputs, 0.1, self.training)


class Attention(nn.Module):
    """Looks at the rows of an image."""

    def __init__(self, dropout):
        super().__init__()
        self.rows = nn.TransformerEncoderLayer(28, 2, 8, dropout, batch_first=True)
        self.output = nn.Linear(28, 10)

    def forward(self, inputs):
        return self.output(self.rows(inputs.squeeze(1)).mean(1))


@pytest.mark.parametrize(
    "model", [lambda: nn.Sequential(nn.Dropout(0.0), mlp()), lambda: Attention(0.0)]
)
def test_what_draws_nothing_is_allowed(small_mnist, workers, model):
    assert gradients_of(task_of(small_mnist, [run_of()], workers, model)).isfinite().all()


def test_a_weight_that_is_computed_is_trained_without_an_output_layer(small_mnist, workers):
    def normed():
        return nn.Sequential(nn.Flatten(), weight_norm(nn.Linear(784, 10)))

    task = task_of(small_mnist, [run_of("mean")], workers, normed)
    assert task.output_layer is None
    [found] = Engine(task, iterations=3, metrics=["training_loss"]).train()
    assert found["training_loss"][-1] < found["training_loss"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch: expected an integer of at least 1, found 0"),
        ({"order": "sorted"}, "order: 'sorted' is not known; allowed: random, consecutive"),
        ({"accumulate": 3}, "accumulate: a batch of 8 cannot be cut into 3 equal parts"),
        ({"accumulate": 0}, "accumulate: expected an integer of at least 1, found 0"),
        ({"gradient_samples": -1}, "gradient_samples: expected an integer of at least 1, found -1"),
        ({"members": (2, 1)}, r"members: expected ascending agents of 0 … 3, found \[2, 1\]"),
        ({"members": (1, 1)}, r"members: expected ascending agents of 0 … 3, found \[1, 1\]"),
        ({"members": (3, 4)}, r"members: expected ascending agents of 0 … 3, found \[3, 4\]"),
        ({"members": ()}, r"members: expected ascending agents of 0 … 3, found \[\]"),
        ({"threads": 1.5}, "threads: expected an integer of at least 1, found 1.5"),
        ({"autocast": "int8"}, "autocast: 'int8' is not known; allowed: "),
        ({"model": lambda: mlp()[:2]}, r"model: expected scores of shape \[2, 10\]"),
        ({"model": nn.Flatten}, "model: expected a module with parameters"),
        ({"model": lambda: Attention(0.1)}, "model: in training it draws"),
        ({"model": mlp()}, "model: expected what makes a module, such as a function"),
        (
            {"model": lambda: nn.Linear(7, 10)},
            r"cannot be trained on samples of shape \[1, 28, 28\]",
        ),
        ({"model": Pair}, r"model: expected scores of shape \[2, 10\].* found tuple"),
        (
            {"model": lambda: nn.Sequential(mlp(), nn.BatchNorm1d(10)), "batch": 1},
            "1 at a time: Expected more than 1 value per channel",
        ),
        (
            {"model": lambda: nn.Sequential(mlp(), nn.BatchNorm1d(10)), "accumulate": 8},
            "1 at a time: Expected more than 1 value per channel",
        ),
        *(
            (
                {"model": partial(nn.Sequential, part, mlp())},
                "^model: in training it draws .*global generator",
            )
            for part in (nn.Dropout(0.5), nn.Dropout2d(0.1), nn.FeatureAlphaDropout(0.2), Noise())
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
    told = r"augment: needs images \[channels, height, width\], found samples of shape \[784\]"
    with pytest.raises(BezoarError, match=told):
        task_of(features, [run_of()], workers, augment=True)


def test_a_partition_for_others_is_refused(small_mnist, workers):
    with pytest.raises(BezoarError, match="partition: made for 5 agents, but the complete network"):
        task_of(small_mnist, [run_of()], workers, partition=deal(small_mnist, agents=5))
    with pytest.raises(BezoarError, match="local_steps: expected an integer of at least 1"):
        Engine(task_of(small_mnist, [run_of()], workers), iterations=1, local_steps=0)
