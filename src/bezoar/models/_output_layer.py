"""Which layer of a network gives the scores."""

from torch import nn


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
