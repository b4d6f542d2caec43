"""The first parameters of a model, as a function of a seed."""

import threading
from collections.abc import Callable
from math import prod, sqrt

import numpy as np
import torch
from torch import nn

from bezoar._errors import BezoarError
from bezoar._seeds import Purpose, generator

_DRAWN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm)

#: Makes a module.
ModelFactory = Callable[[], nn.Module]

#: Held by the thread that uses torch's generator. There is one for all threads: two that use it at
#: a time draw each other's numbers, and torch can then stop for ever, since it waits for the
#: generator without letting other Python threads run.
_generator_in_use = threading.Lock()


class SeededModule(nn.Module):
    """A module that :func:`make` gives the same first parameters on any machine.

    All its parameters belong to layers of the kinds that :func:`initialise` knows.
    """

    def initialise(self, rng: np.random.Generator) -> None:
        """Draw the parameters of all layers."""
        for name, child in self.named_children():
            _initialise(child, name, rng)


def make(model: ModelFactory, seed: int) -> nn.Module:
    """A module whose parameters follow from the seed.

    A module with a method ``initialise(rng)``, as every :class:`SeededModule` has it, begins with
    :func:`initialise`, the same on any machine. Any other keeps the parameters that it is made
    with, by torch's generator with a seed that follows from the run's.
    """
    if isinstance(model, nn.Module):
        raise BezoarError(
            f"model: expected what makes a module, such as a function, found the module {model}"
        )
    with _generator_in_use, torch.random.fork_rng(devices=()):
        torch.manual_seed(int(generator(seed, Purpose.START).integers(2**63)))
        module = model()
    if callable(getattr(module, "initialise", None)):
        initialise(module, seed)
    return module


def initialise(module: nn.Module, seed: int) -> None:
    """Give every parameter of a module its first value, the same for the same seed anywhere.

    Weights and biases of linear layers and convolutions are uniform in ±1/√(inputs of a neuron),
    PyTorch's own choice; normalisations begin as the identity. A layer of another kind that has
    parameters must have a method ``initialise(rng: numpy.random.Generator)``, which then also
    answers for the layers inside it.
    """
    _initialise(module, "", generator(seed, Purpose.MODEL))


def _initialise(module: nn.Module, name: str, rng: np.random.Generator) -> None:
    own = getattr(module, "initialise", None)
    if callable(own):
        own(rng)
    elif isinstance(module, _DRAWN):
        bound = 1 / sqrt(prod(module.weight.shape[1:]))
        for parameter in module.parameters(recurse=False):
            # numpy's numbers do not depend on the processor, or on the parameter's type and device.
            values = rng.uniform(-bound, bound, size=tuple(parameter.shape))
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(values))
    elif isinstance(module, _NORMS):
        module.reset_parameters()  # ones and zeros
    elif any(True for _ in module.parameters(recurse=False)):
        raise BezoarError(
            f"model: {name or 'it'} is a {type(module).__name__}, which cannot be initialised from "
            "a seed; give it a method initialise(rng)"
        )
    else:
        for inner, child in module.named_children():
            _initialise(child, f"{name}.{inner}" if name else inner, rng)
