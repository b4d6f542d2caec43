"""What is trained, chosen by name with its options."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, ClassVar

from torch import nn

from bezoar._errors import BezoarError
from bezoar._options import Part
from bezoar.models._small import MLP

#: Makes a module from the shape of a sample, the number of classes, and options.
ModuleMaker = Callable[..., nn.Module]


class Model(ABC):
    """What is trained: makes a module for given samples and classes."""

    @abstractmethod
    def module(self, sample_shape: tuple[int, ...], classes: int) -> nn.Module:
        """A module that turns samples ``[n, *sample_shape]`` into scores ``[n, classes]``."""


@dataclass(frozen=True)
class Softmax(Part, Model):
    """Softmax regression: multinomial logistic regression with a bias."""

    name: ClassVar[str] = "softmax"

    def module(self, sample_shape: tuple[int, ...], classes: int) -> nn.Module:
        return MLP(sample_shape, classes, depth=0)


@dataclass(frozen=True)
class NetworkModel(Model):
    """A neural network with its options.

    Attributes:
        make: makes the module.
        options: what it is given beside the shape of a sample and the number of classes.
    """

    make: ModuleMaker
    options: Mapping[str, Any]

    def module(self, sample_shape: tuple[int, ...], classes: int) -> nn.Module:
        made: Any = self.make(tuple(sample_shape), classes, **self.options)
        if not isinstance(made, nn.Module):
            raise BezoarError(f"model: expected a torch.nn.Module, found {type(made).__name__}")
        return made


@cache
def network_model(make: ModuleMaker) -> Callable[..., NetworkModel]:
    """A function of a network's options alone, as other parts that are chosen by name are made.

    ``make`` is a class or function of the shape of a sample, the number of classes, and options.
    """
    if isinstance(make, nn.Module):
        kind = type(make).__name__
        raise BezoarError(
            f"model: expected what makes a module, such as a function, found a {kind}"
        )
    taken = list(inspect.signature(make, eval_str=True).parameters.values())
    if len(taken) < 2:
        raise BezoarError(
            "model: expected a function of the shape of a sample, the number of classes and "
            f"options, found one of {len(taken)} parameters"
        )

    @wraps(make)
    def with_options(**options: Any) -> NetworkModel:
        return NetworkModel(make, options)

    options = taken[2:]
    with_options.__annotations__ = {
        each.name: each.annotation for each in options if each.annotation is not each.empty
    }
    with_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return with_options
