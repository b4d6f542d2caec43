"""Models: how a model lies in memory, and what it makes of samples.

Here belongs what is trained: softmax regression, small networks and ResNets, and how they
begin. How a model is trained is the affair of :mod:`bezoar.training`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from bezoar import _options
from bezoar.models._batch_norm import pool_buffers
from bezoar.models._initialise import ModelFactory, SeededModule, initialise, make
from bezoar.models._model import Model, NetworkModel, Softmax, network_model
from bezoar.models._resnet import resnet18, resnet34
from bezoar.models._small import CNN, MLP
from bezoar.models._softmax import SoftmaxRegression
from bezoar.models._starts import STARTS, Pretrained, Random, Start, Weights, Zero
from bezoar.models._weights import load_weights, output_layer, set_weights

#: Every model by its name.
MODELS: dict[str, Callable[..., Model]] = {
    "softmax": Softmax,
    "mlp": network_model(MLP),
    "cnn": network_model(CNN),
    "resnet18": network_model(resnet18),
    "resnet34": network_model(resnet34),
}

__all__ = [
    "CNN",
    "MLP",
    "MODELS",
    "STARTS",
    "Model",
    "ModelFactory",
    "NetworkModel",
    "Pretrained",
    "Random",
    "SeededModule",
    "Softmax",
    "SoftmaxRegression",
    "Start",
    "Weights",
    "Zero",
    "create",
    "initialise",
    "load_weights",
    "make",
    "network_model",
    "output_layer",
    "pool_buffers",
    "resnet18",
    "resnet34",
    "set_weights",
]


def create(
    name: str, image_shape: tuple[int, ...], classes: int, seed: int = 0, **options: Any
) -> nn.Module:
    """The module of the model called ``name``, for samples of a shape, with random parameters.

    They follow from the seed, see :func:`make`. The options are those of the model.
    """
    model = _options.create("model", name, MODELS, options)
    return make(partial(model.module, tuple(image_shape), classes), seed)
