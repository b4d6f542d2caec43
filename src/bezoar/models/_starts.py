"""Where the agents' common model starts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne, BelowOne, Count, NonNegative, Part, Positive
from bezoar.models._weights import load_weights, set_weights


class Start(Part, ABC):
    """Where everyone starts; a frozen dataclass whose fields are its options."""

    @abstractmethod
    def begin(self, module: nn.Module, trained: Mapping[str, Tensor] | None = None) -> None:
        """Give a module its first parameters and buffers.

        Args:
            module: the module, which is changed in place. It has random parameters that follow
                from the run's seed.
            trained: a trained model by the names of its tensors, for a start that asks for one.
        """


@dataclass(frozen=True)
class Zero(Start):
    """Every parameter is zero, the paper's start for softmax regression."""

    name: ClassVar[str] = "zero"

    def begin(self, module: nn.Module, trained: Mapping[str, Tensor] | None = None) -> None:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.zero_()


@dataclass(frozen=True)
class Random(Start):
    """Random parameters that follow from the run's seed."""

    name: ClassVar[str] = "random"

    def begin(self, module: nn.Module, trained: Mapping[str, Tensor] | None = None) -> None:
        pass


@dataclass(frozen=True)
class Weights(Start):
    """Parameters and buffers from a safetensors file with a module's ``state_dict``.

    Args:
        path: the file.
        new_output: whether the output layer is random instead, by the run's seed.
    """

    path: Path
    new_output: bool = False

    name: ClassVar[str] = "weights"

    def begin(self, module: nn.Module, trained: Mapping[str, Tensor] | None = None) -> None:
        load_weights(self.path, module, self.new_output)


@dataclass(frozen=True)
class Pretrained(Start):
    """The same model, trained centrally on all training samples with their true labels.

    It is a run of its own, with Nesterov's momentum and steps that rise to ``step`` and fall to
    zero. It is computed once and kept in the store.

    Args:
        epochs: how often every sample is taken.
        batch: samples in a batch, a multiple of 4; batch norm takes statistics over a quarter.
        step: the largest step size.
        beta: how much of the momentum stays.
        weight_decay: how much of the model is added to its gradient.
        augment: whether images are cropped and mirrored at random.
        seed: the seed of this training.
        new_output: whether the output layer is then random, by the seed of the run that starts.
    """

    epochs: AtLeastOne = 12
    batch: Annotated[int, Field(ge=4, multiple_of=4)] = 128
    step: Positive = 0.1
    beta: BelowOne = 0.9
    weight_decay: NonNegative = 5e-4
    augment: bool = False
    seed: Count = 0
    new_output: bool = True

    name: ClassVar[str] = "pretrained"

    def begin(self, module: nn.Module, trained: Mapping[str, Tensor] | None = None) -> None:
        if trained is None:
            raise BezoarError("start: the pretrained model is missing")
        set_weights(module, trained, self.new_output)


#: Every start by its name.
STARTS: dict[str, type[Start]] = {kind.name: kind for kind in (Zero, Random, Pretrained, Weights)}
