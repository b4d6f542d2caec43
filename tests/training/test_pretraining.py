"""Central training for a pretrained start."""

from math import cos, pi

import numpy as np
import pytest
import torch
from small_networks import Residual, cnn, deal, initial, pixels, run_of, task_of
from torch.nn.functional import cross_entropy

from bezoar import BezoarError, data, training
from bezoar._seeds import Purpose, generator
from bezoar.training import OneCycle, Pretraining, Workers
from bezoar.training._batches import Batches

#: Eight updates in two epochs of a hundred images.
SHORT = {"epochs": 2, "batch": 24, "augment": False}


@pytest.fixture(scope="module")
def hundred(small_mnist):
    """Ten images of each digit."""
    few = np.sort(np.argsort(small_mnist.train_labels, kind="stable").reshape(10, -1)[:, :10], None)
    return data.Dataset(
        "hundred",
        small_mnist.train[few],
        small_mnist.train_labels[few],
        small_mnist.test,
        small_mnist.test_labels,
        classes=10,
    )


def plain(dataset, seed, momentum, nesterov):
    """Stochastic gradient descent as ``torch.optim.SGD`` has it, in float64."""
    module = initial(cnn, seed)
    optimizer = torch.optim.SGD(
        module.parameters(), lr=1, momentum=momentum, nesterov=nesterov, weight_decay=0.01
    )
    rng = generator(seed, Purpose.PARTITION)
    parts = data.partition("iid")(dataset.train_labels, 10, 4, rng)
    batches = Batches(parts.sizes, 6)
    losses = []
    for update in range(1, 9):
        # Up in two steps, then down to zero in seven, of which the last is not taken.
        turn = pi * (update - 1.6) / 7.4
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * (update / 1.6 if update == 1 else (1 + cos(turn)) / 2)
        taken = np.concatenate(
            [parts.samples(part)[batches.places(seed, part, update)] for part in range(4)]
        )
        labels = torch.from_numpy(dataset.train_labels[taken])
        loss = cross_entropy(module(pixels(dataset.train[taken])), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return module, losses


@pytest.mark.parametrize("nesterov", [True, False])
def test_it_is_plain_training_with_one_cycle(hundred, workers, nesterov):
    told = []
    recipe = Pretraining(**SHORT, step=0.02, momentum=0.8, nesterov=nesterov, weight_decay=0.01)
    found, _ = recipe.train(
        cnn, hundred, seed=3, workers=workers, progress=lambda *step: told.append(step)
    )
    module, losses = plain(hundred, 3, 0.8, nesterov)
    for name, expected in module.state_dict().items():
        torch.testing.assert_close(found[name].double(), expected, rtol=1e-4, atol=1e-5)
    assert [done for done, _, _ in told] == list(range(1, 9))
    assert {total for _, total, _ in told} == {8}
    np.testing.assert_allclose([loss for *_, loss in told], losses, rtol=1e-4)


def test_the_module_is_as_accurate_as_is_said(small_mnist, workers):
    """And far better than chance, with statistics of batch norm and all."""
    recipe = Pretraining(epochs=10, batch=16, augment=False)
    found, accuracy = recipe.train(Residual, small_mnist, workers=workers)
    module = Residual().eval()
    module.load_state_dict(found)
    with torch.no_grad():
        chosen = module(pixels(small_mnist.test, torch.float32)).argmax(1)
    right = (chosen == torch.from_numpy(small_mnist.test_labels)).double().mean().item()
    assert accuracy == right > 0.4
    assert {each.dtype for each in found.values()} == {torch.float32, torch.int64}
    assert all(each.is_contiguous() for each in found.values())


def test_it_is_a_function_of_its_arguments(hundred):
    def bits(workers, seed=0, **options):
        recipe = Pretraining(**SHORT | options)
        found, _ = recipe.train(Residual, hundred, seed=seed, workers=workers)
        return [values.numpy().tobytes() for values in found.values()]

    with Workers(1) as one, Workers(2) as two:
        expected = bits(one)
        torch.rand(3)
        assert bits(two) == bits(None) == expected
        changes = ({"seed": 1}, {"augment": True}, {"step": 0.05}, {"decay": "linear"})
        for change in changes:
            assert bits(one, **change) != expected


def test_agents_start_where_it_ended(hundred, workers):
    found, accuracy = Pretraining(**SHORT).train(Residual, hundred, workers=workers)
    task = task_of(hundred, [run_of()], workers, Residual, deal(hundred), start={0: found})
    [history] = training.Engine(task, iterations=0, metrics=("accuracy", "accuracy_worst")).train()
    assert history["accuracy"][0] == history["accuracy_worst"][0] == accuracy


@pytest.mark.parametrize("decay", ["cosine", "linear"])
@pytest.mark.parametrize(("warm_up", "iterations"), [(0, 7), (0.2, 50), (0.5, 10), (1, 9)])
def test_one_cycle_goes_up_and_down(decay, warm_up, iterations):
    schedule = OneCycle(0.3, warm_up=warm_up, decay=decay)
    steps = [schedule(k, iterations) for k in range(1, iterations + 1)]
    top = int(np.argmax(steps))
    assert steps[top] <= 0.3
    assert (np.diff(steps[: top + 1]) > 0).all()
    assert (np.diff(steps[top:]) < 0).all()
    assert min(steps) > 0
    assert top + 1 == pytest.approx(max(1, warm_up * iterations), abs=1)
    if warm_up == 0.2:
        assert steps[top] == 0.3
        assert steps[-1] < 0.03
        bends = np.abs(np.diff(steps[top:], 2)).max()
        assert (bends < 1e-12) == (decay == "linear")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 30}, "batch: expected a multiple of 4, found 30"),
        ({"epochs": 0}, "epochs: expected a number of at least 1, found 0"),
        ({"momentum": 1.0}, "momentum: expected a number of less than 1.0, found 1.0"),
        ({"decay": "steps"}, "decay: expected 'cosine' or 'linear', found 'steps'"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(BezoarError, match=message):
        Pretraining(**options)


def test_a_step_that_is_too_large_is_refused(hundred, workers):
    with pytest.raises(BezoarError, match=r"step: pretraining with 1e\+30 ended in numbers"):
        Pretraining(**SHORT, step=1e30).train(cnn, hundred, workers=workers)
