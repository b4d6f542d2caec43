"""Starting from given weights."""

from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from bezoar._errors import BezoarError
from bezoar.models._output_layer import output_layer

#: How many names an error lists.
LISTED = 5


def load_weights(path: str | Path, module: nn.Module, new_output_layer: bool = False) -> None:
    """Give a module the parameters and buffers in a safetensors file, all or none of them.

    Args:
        path: the file, with the tensors of the module's ``state_dict``.
        module: the module, which is changed in place.
        new_output_layer: whether the output layer keeps what it has, because the file's is for
            other classes; see :func:`~bezoar.models.output_layer`.

    Raises:
        BezoarError: if tensors are missing, unexpected or misshapen.
    """
    try:
        given = load_file(path)
    except (SafetensorError, OSError) as error:
        raise BezoarError(f"weights: {path} cannot be read: {error}") from error
    needed = module.state_dict()
    if new_output_layer:
        own = f"{output_layer(module)[0]}."
        given, needed = (
            {name: tensor for name, tensor in tensors.items() if not name.startswith(own)}
            for tensors in (given, needed)
        )
    shapes = [
        f"{name} {list(given[name].shape)} instead of {list(tensor.shape)}"
        for name, tensor in needed.items()
        if name in given and given[name].shape != tensor.shape
    ]
    problems = {
        "missing": [name for name in needed if name not in given],
        "unexpected": [name for name in given if name not in needed],
        "misshapen": shapes,
    }
    found = [f"{problem}: {_listed(names)}" for problem, names in problems.items() if names]
    if found:
        raise BezoarError(f"weights: {path} does not fit the model; {'; '.join(found)}")
    with torch.no_grad():
        for name, tensor in needed.items():
            tensor.copy_(given[name])


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
