"""Small torch modules for 28 × 28 pixels, flat or not, and what the tests train with them."""

import numpy as np
import torch
from torch import nn

from bezoar import aggregators, attacks, data, networks, training
from bezoar._seeds import Purpose, generator

AGENTS = 4
BATCH = 8
STEP = 0.01


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


MODELS = {"mlp": mlp, "cnn": cnn, "residual": Residual}


def deal(dataset, agents=AGENTS, how="iid"):
    return data.partition(how)(dataset.train_labels, 10, agents, np.random.default_rng(0))


def run_of(rule="local", attack="label_flip", network=None, **options):
    options.setdefault("schedule", training.Constant(STEP))
    return training.Run(
        network or networks.complete(AGENTS),
        aggregators.create(rule),
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
    with torch.random.fork_rng():
        torch.manual_seed(int(generator(seed, Purpose.START).integers(2**63)))
        return model().to(dtype)


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
