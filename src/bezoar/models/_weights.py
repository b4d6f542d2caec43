"""Starting from given weights."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from bezoar._errors import BezoarError
from bezoar._numbers import listed


def load_weights(path: str | Path, module: nn.Module, new_output_layer: bool = False) -> None:
    """Give a module the tensors in a safetensors file, all or none; see :func:`set_weights`."""
    try:
        given = load_file(path)
    except (SafetensorError, OSError) as error:
        why = str(error).removesuffix(f": {path}")
        raise BezoarError(f"weights: {path} cannot be read: {why}") from error
    set_weights(module, given, new_output_layer, told=f"weights: {path}")


def output_layer(module: nn.Module) -> tuple[str, nn.Linear] | None:
    """The name and the layer that gives the scores of the classes.

    It is ``module.output`` where that is a linear layer, otherwise the last linear layer in the
    order in which the module names its layers; ``None`` if it has no linear layer.
    """
    linear = {name: layer for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}
    if not linear:
        return None
    name = "output" if "output" in linear else list(linear)[-1]
    return name, linear[name]


def set_weights(
    module: nn.Module,
    weights: Mapping[str, Tensor],
    new_output_layer: bool = False,
    told: str = "weights: what was given",
) -> None:
    """Give a module some parameters and buffers, all or none of them.

    Args:
        module: the module, which is changed in place.
        weights: the tensors of the module's ``state_dict``, of any floating-point type.
        new_output_layer: whether the output layer keeps what it has, because the given one is for
            other classes; see :func:`~bezoar.models.output_layer`.
        told: the field and where the weights are from, for errors.

    Raises:
        BezoarError: if tensors are missing, unexpected, misshapen or not finite.
    """
    given, needed = dict(weights), module.state_dict()
    if new_output_layer:
        layer = output_layer(module)
        if layer is None:
            kind = type(module).__name__
            raise BezoarError(f"model: expected a linear layer that gives the scores in {kind}")
        own = f"{layer[0]}." if layer[0] else ""  # of a module that is the layer itself
        given, needed = (
            {name: tensor for name, tensor in tensors.items() if not name.startswith(own)}
            for tensors in (given, needed)
        )
    both = given.keys() & needed.keys()
    problems = {
        "missing": [name for name in needed if name not in both],
        "unexpected": [name for name in given if name not in both],
        "misshapen": [
            f"{name} {list(given[name].shape)} instead of {list(tensor.shape)}"
            for name, tensor in needed.items()
            if name in both and given[name].shape != tensor.shape
        ],
        "not finite": [name for name in given if not bool(given[name].isfinite().all())],
    }
    found = [f"{problem}: {listed(names, 5)}" for problem, names in problems.items() if names]
    if found:
        raise BezoarError(f"{told} does not fit the model; {'; '.join(found)}")
    with torch.no_grad():
        for name, tensor in needed.items():
            tensor.copy_(given[name])
