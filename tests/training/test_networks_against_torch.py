"""Neural networks in Algorithm 1 against plain PyTorch."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from small_networks import (
    AGENTS,
    MODELS,
    PACKAGE_MODELS,
    ROUNDING,
    STEP,
    Residual,
    batch_of,
    cnn,
    deal,
    flipped,
    gradients_of,
    initial,
    near,
    pixels,
    run_of,
    task_of,
    together,
    vector_of,
)
from torch import nn
from torch.nn.functional import cross_entropy

from bezoar import models, networks, training
from bezoar.training import Engine, average_model

#: What the plain training is done with, as runs have it.
OPTIMIZER = {"optimizer": training.HeavyBall(0.9), "weight_decay": 0.01}


def plain_training(model, batches, dtype=torch.float64):
    """A module trained with ``torch.optim.SGD`` on some batches."""
    module = initial(model, dtype=dtype)
    optimizer = torch.optim.SGD(module.parameters(), lr=STEP, momentum=0.9, weight_decay=0.01)
    for images, labels in batches:
        optimizer.zero_grad()
        cross_entropy(module(images), labels).backward()
        optimizer.step()
    return module


def evaluated(module, dataset):
    """Accuracy and mean cross-entropy in evaluation mode."""
    images, labels = pixels(dataset.test), torch.from_numpy(dataset.test_labels)
    with torch.no_grad():
        scores = module.double().eval()(images)
    return (scores.argmax(1) == labels).double().mean(), cross_entropy(scores, labels)


class Alone:
    """Everyone keeps what it has: the exchanges of agents whose neighbours are elsewhere."""

    remember = False

    def at(self, iteration):
        return self

    def memory(self, models):
        return []

    def reached(self, iteration):
        return iteration

    def __call__(self, sent, tell=False, out=None):
        return out.copy_(sent.messages), None


def check_agents_alone(dataset, workers, model, dtype="float64", rounding=None):
    """A regular and a poisoned agent, 20 steps long: parameters, batch-norm statistics, scores."""
    run = run_of("local", **OPTIMIZER)
    members = (0, *run.network.poisoned)
    task = task_of(dataset, [run], workers, model, dtype=dtype, members=members)
    engine = Engine(task, iterations=20, exchanges=Alone())
    state = engine.start()
    for _ in range(20):
        state = engine.step(state)
    buffers = {name: state.tensors[name][0] for name in task.buffers}
    _, losses = task.test(state.models[0], buffers, range(2), loss=True)
    for place, agent in enumerate(members):
        batches = [batch_of(task, place, update) for update in range(1, 21)]
        if agent in run.network.poisoned:
            batches = [(images, flipped(labels)) for images, labels in batches]
        plain = plain_training(model, batches, task.dtype)
        assert near(task.vectors(state.models)[0, place], vector_of(plain), rounding)
        for name, values in plain.named_buffers():
            found = buffers[f"buffers.{name}"][place]
            assert near(found.to(task.dtype), values.to(task.dtype), rounding), name
        _, loss = evaluated(plain, dataset)
        assert near(losses[place], loss, rounding or ROUNDING[task.dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_an_agent_alone_is_trained_as_torch_trains_it(small_mnist, workers, model, dtype):
    check_agents_alone(small_mnist, workers, model, dtype)


@pytest.mark.parametrize("model", PACKAGE_MODELS.values(), ids=PACKAGE_MODELS)
def test_every_model_of_the_package_is_trained_as_torch_trains_it(few_cifar, workers, model):
    # Deep networks make more of every rounding, from step to step.
    check_agents_alone(few_cifar, workers, model, rounding=1e-5)


@pytest.mark.parametrize("name", ["softmax", "mlp", "cnn", "resnet18 with groups"])
def test_the_mean_of_everyone_is_centralised_training(few_cifar, workers, name):
    """On a complete network the agents follow gradient descent on all their batches together."""
    network = networks.complete(AGENTS).with_poisoned(())
    model = PACKAGE_MODELS[name]
    task = task_of(few_cifar, [run_of("mean", network=network, **OPTIMIZER)], workers, model)
    [history] = Engine(task, iterations=5).train()
    batches = []
    for update in range(1, 6):
        parts = [batch_of(task, agent, update) for agent in range(AGENTS)]
        batches.append([torch.cat(part) for part in zip(*parts, strict=True)])
    module = plain_training(model, batches)
    for agent in range(AGENTS):
        assert near(history.models[agent], vector_of(module))


def test_the_papers_resnet_is_trained(few_cifar, workers):
    """ResNet18 of width 64 for 100 classes: a step lowers the cost on its batches."""
    hundred = replace(few_cifar, classes=100, class_names=())
    run = run_of("mean", network=networks.complete(2).with_poisoned(()))
    model = partial(models.resnet18, (3, 32, 32), 100)
    task = task_of(hundred, [run], workers, model, deal(hundred, 2), batch=4, dtype="float32")
    batches = [batch_of(task, agent, 1) for agent in range(2)]
    images, labels = (torch.cat(part) for part in zip(*batches, strict=True))
    module = initial(model, dtype=torch.float32)
    before = cross_entropy(module(images), labels)
    [history] = Engine(task, iterations=1).train()
    assert history.models.shape == (2, 11_220_132)
    module.load_state_dict(average_model(model(), history.models, history.buffers))
    assert cross_entropy(module(images), labels) < before


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


def test_tests_are_in_evaluation_mode_with_the_right_statistics(small_mnist, workers):
    """Agents with their own; the average model with those of all regular agents' samples."""
    task = task_of(small_mnist, [run_of("mean")], workers, Residual)
    metrics = ("accuracy", "accuracy_worst", "accuracy_all", "test_loss")
    engine = Engine(task, iterations=3, metrics=metrics)
    state = engine.start()
    for _ in range(3):
        state = engine.step(state)
    found = engine.measure(state)
    regular = list(task.runs[0].network.regular)

    def evaluated_at(vector, buffers):
        module = Residual().double()
        nn.utils.vector_to_parameters(vector, module.parameters())  # its output layer comes first
        module.load_state_dict(buffers, strict=False)
        return evaluated(module, small_mnist)

    vectors = task.vectors(state.models)[0]
    own = {
        name.removeprefix("buffers."): values[0]
        for name, values in state.tensors.items()
        if name.startswith("buffers.")
    }
    accuracies = [
        evaluated_at(vectors[agent], {name: values[agent] for name, values in own.items()})[0]
        for agent in regular
    ]
    assert found["accuracy_worst"].item() == min(accuracies).item()

    def of_average(agents):
        pooled = {}
        for part in ("before", "after"):
            means, variances = (own[f"{part}.running_{kind}"][agents] for kind in ("mean", "var"))
            pooled[f"{part}.running_mean"] = means.mean(0)
            pooled[f"{part}.running_var"] = variances.mean(0) + means.var(0, correction=0)
        return evaluated_at(vectors[agents].mean(0), pooled)

    accuracy, loss = of_average(regular)
    assert found["accuracy"].item() == accuracy.item()
    assert found["accuracy_all"].item() == of_average(range(AGENTS))[0].item()
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
