"""Small torch modules for real images, and what the tests train with them."""

from functools import partial

import numpy as np
import torch
from torch import nn

from bezoar import aggregators, attacks, data, models, networks, training

AGENTS = 4
BATCH = 8
STEP = 0.01

#: Options with which rules are possible on all networks here.
POSSIBLE = {"bulyan": {"estimate": "up_to_1"}}

#: How far results of the same computation may be apart, in units of the largest number.
ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-11}


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.Tanh(), nn.Linear(16, 10))


def cnn():
    return nn.Sequential(
        nn.Flatten(),
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 4, 5, stride=3),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(54, 10),
    )


class Residual(nn.Module):
    """A residual network with batch norm whose output layer is not its last part."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(6, 10)
        self.stem = nn.Conv2d(1, 6, 5, stride=3, bias=False)
        self.before = nn.BatchNorm2d(6)
        self.inside = nn.Conv2d(6, 6, 3, padding=1, bias=False)
        self.after = nn.BatchNorm2d(6)

    def forward(self, inputs):
        first = torch.relu(self.before(self.stem(inputs.reshape(-1, 1, 28, 28))))
        second = torch.relu(first + self.after(self.inside(first)))
        return self.output(second.mean((2, 3)))


#: Of the tests' own, for the 28 × 28 pixels of MNIST.
MODELS = {"mlp": mlp, "cnn": cnn, "residual": Residual}


def _named(name, **options):
    return partial(models.MODELS[name](**options).module, (3, 32, 32), 10)


#: Everything that the package has, as narrow as can be, for the 3 × 32 × 32 pixels of CIFAR.
PACKAGE_MODELS = {
    "softmax": _named("softmax"),
    "mlp": _named("mlp", width=16),
    "cnn": _named("cnn", width=4, hidden=16),
    "resnet18": _named("resnet18", width=4),
    "resnet18 with groups": _named("resnet18", width=4, norm="group"),
    "resnet34": _named("resnet34", width=4),
}


def deal(dataset, agents=AGENTS, how="iid"):
    return data.partition(how)(dataset.train_labels, 10, agents, np.random.default_rng(0))


def run_of(rule="local", attack="label_flip", network=None, **options):
    options.setdefault("schedule", training.Constant(STEP))
    return training.Run(
        network or networks.complete(AGENTS),
        aggregators.create(rule, **POSSIBLE.get(rule, {})),
        attacks.create(attack),
        **options,
    )


def task_of(dataset, runs, workers, model=mlp, partition=None, **options):
    options = {"batch": BATCH, "threads": 1, "dtype": "float64"} | options
    return training.NetworkTask(
        dataset, partition or deal(dataset), runs, workers, model=model, **options
    )


def initial(model, seed=0, dtype=torch.float64):
    """The module that everyone starts with."""
    return models.make(model, seed).to(dtype)


def vector_of(module, of=lambda parameter: parameter):
    """A module's parameters, or something of them, as a vector: the output layer's weight first."""
    output = getattr(module, "output", None)
    if output is None:
        [*_, output] = [part for part in module.modules() if isinstance(part, nn.Linear)]
    rest = [parameter for parameter in module.parameters() if parameter is not output.weight]
    parts = [of(parameter).detach().flatten() for parameter in (output.weight, *rest)]
    return torch.cat(parts)


def pixels(samples, dtype=torch.float64):
    return torch.from_numpy(samples).to(dtype) * (2 / 255) - 1


def near(found, expected, rounding=None):
    """Equal up to rounding, in units of the largest number."""
    scale = expected.abs().max().clamp(min=1)
    return bool(((found - expected).abs().max() / scale) < (rounding or ROUNDING[expected.dtype]))


def batch_of(task, agent, update, seed=0):
    """The samples and true labels that an agent takes: the only thing shared with the package."""
    places = task.partition.samples(agent)[task.batches.places(seed, agent, update)]
    images = pixels(task.dataset.train[places], task.dtype)
    return images, torch.from_numpy(task.dataset.train_labels[places])


def flipped(labels):
    return 9 - labels


def gradients_of(task, state=None, update=1):
    state = state or training.State(0, task.start())
    return task.gradients(state, update, torch.empty_like(state.models))


def together(task):
    """Everyone's common model and their own ones, before training."""
    models = task.start()["models"]
    return models[:, 0], models
