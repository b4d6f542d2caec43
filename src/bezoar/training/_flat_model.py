"""A torch module whose parameters lie in a vector that somebody else holds."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from bezoar._errors import BezoarError
from bezoar.aggregators import OutputLayer
from bezoar.models import output_layer, pool_buffers

#: How the names of buffers begin in the state of a training.
BUFFERS = "buffers."


class _BufferPlace(NamedTuple):
    """A buffer's name in a module, the part of the module that has it, and its name there."""

    name: str
    owner: nn.Module
    key: str


class _Place(NamedTuple):
    """Where a parameter begins in a vector, its shape, and the strides of its dimensions."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class FlatModel:
    """A module whose parameters and buffers are views into memory that it is given.

    In a vector ``[D]`` the weight of the output layer comes first, the other parameters follow in
    the module's order; see :func:`~bezoar.models.output_layer`. In memory the channels of
    convolutions come last, ``[out, height, width, in]``, which is the layout that torch computes
    fastest with; :meth:`vectors` has every parameter as the module's own ``flatten`` gives it. The
    module loses its own parameters: see :meth:`bind`.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        #: The buffers as the module was made with them, by name.
        self.initial_buffers = {name: b.detach().clone() for name, b in module.named_buffers()}
        named = dict(module.named_parameters())
        if not named:
            raise BezoarError("model: expected a module with parameters, found one without")
        output, self.output_layer = output_layer(module), None
        layer = None if output is None else output[1]
        names = {id(each): name for name, each in named.items()}
        # A weight that is computed from parameters, as by weight norm, is none of them.
        if layer is not None and id(layer.weight) in names:
            first = names[id(layer.weight)]
            named = {first: named.pop(first), **named}
            starts = accumulate((each.numel() for each in named.values()), initial=0)
            places = dict(zip(named, starts, strict=False))
            classes, features = layer.weight.shape
            bias = places.get(names.get(id(layer.bias), ""))
            self.output_layer = OutputLayer(classes, features, bias=bias)
        #: The shape of every parameter, by name, in the order of a vector.
        self.shapes = {name: tuple(each.shape) for name, each in named.items()}
        self._sizes = [each.numel() for each in named.values()]
        starts = accumulate(self._sizes, initial=0)
        self._places = [
            _Place(start, shape, _strides(shape))
            for start, shape in zip(starts, self.shapes.values(), strict=False)
        ]
        self._writes_inputs = True  # until it is known better
        self._nothing = next(iter(named.values())).detach().new_empty(0)
        self._collect()
        flat = torch.cat([each.detach().flatten() for each in self._parameters])
        self.start = self.in_memory(flat)
        self.release()

    def _collect(self) -> None:
        """Note where the module has its parameters and buffers."""
        named = dict(self.module.named_parameters())
        self._parameters = [named[name] for name in self.shapes]
        self._buffers = [
            _BufferPlace(name, self.module.get_submodule(owner), key)
            for name in self.initial_buffers
            for owner, _, key in [name.rpartition(".")]
        ]

    def copy(self) -> "FlatModel":
        """Another one, to be used by another thread."""
        other = copy.copy(self)
        other.module = copy.deepcopy(self.module)
        other._collect()
        return other

    def bind(
        self, vector: Tensor, buffers: Mapping[str, Tensor], gradient: Tensor | None = None
    ) -> None:
        """Let parameters be views of a ``vector [D]``, and buffers be those that are given.

        Training mode writes to the buffers, and a backward pass adds to the ``gradient [D]``.
        """
        gradients = [None] * len(self._sizes) if gradient is None else self._views(gradient)
        for own, value, into in zip(self._parameters, self._views(vector), gradients, strict=True):
            own.grad = None  # it must not have another shape than the data
            own.data = value
            own.grad = into
        for place in self._buffers:
            place.owner._buffers[place.key] = buffers[place.name]

    def samples_needed(self, inputs: Tensor, classes: int) -> int:
        """How many samples the module needs at a time in training: one, or as many as ``inputs``.

        Batch norm has no statistics of a single number. A module that cannot be trained on the
        ``inputs [n, …]`` is refused.
        """
        if not any(own.requires_grad for own in self._parameters):
            raise BezoarError("model: expected parameters to train, found all of them frozen")
        self.module.train()
        self.bind(self.start, {name: b.clone() for name, b in self.initial_buffers.items()})
        count, version = len(inputs), inputs._version
        with torch.no_grad(), NoRandomNumbers():
            try:
                scores = self.module(inputs)
            except BezoarError:
                raise
            except (RuntimeError, ValueError) as error:
                raise BezoarError(
                    f"model: it cannot be trained on samples of shape {list(inputs.shape[1:])}, "
                    f"{count} at a time: {error}"
                ) from error
            self._writes_inputs = inputs._version != version
            expected = [count, classes]
            found = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            if found != expected:
                raise BezoarError(
                    f"model: expected scores of shape {expected}, one a class, found {found}"
                )
            try:
                self.scores(inputs[:1])
            except (RuntimeError, ValueError):
                return count
            finally:
                self.release()
        return 1

    def scores(self, inputs: Tensor) -> Tensor:
        """``[n, classes]`` what the module gives for samples, which it may not write to."""
        scores: Tensor = self.module(inputs.clone() if self._writes_inputs else inputs)
        return scores

    def in_memory(self, vectors: Tensor) -> Tensor:
        """``[..., D]`` vectors in the module's own order as they lie in memory."""
        models = torch.empty_like(vectors)
        parts = vectors.split(self._sizes, -1)
        for view, part in zip(self._views(models), parts, strict=True):
            view.copy_(part.reshape(view.shape))
        return models

    def vectors(self, models: Tensor) -> Tensor:
        """``[..., D]`` models in memory as vectors in the module's own order."""
        lead = models.shape[:-1]
        return torch.cat([view.reshape(*lead, -1) for view in self._views(models)], -1)

    def _views(self, models: Tensor) -> list[Tensor]:
        """``[..., *shape]`` each parameter of models ``[..., D]``."""
        lead, steps, first = models.shape[:-1], models.stride()[:-1], models.storage_offset()
        return [
            models.as_strided(lead + place.shape, steps + place.strides, first + place.start)
            for place in self._places
        ]

    def keep_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        """Write to ``buffers`` what a module put in their place instead of changing them."""
        for place in self._buffers:
            found = place.owner._buffers[place.key]
            if found is not None and found is not buffers[place.name]:
                buffers[place.name].copy_(found)

    def release(self) -> None:
        """Let go of the memory given to :meth:`bind`."""
        for own in self._parameters:
            own.grad = None
            own.data = self._nothing
        for place in self._buffers:
            place.owner._buffers[place.key] = self.initial_buffers[place.name]


class NoRandomNumbers(TorchDispatchMode):
    """Refuses a module that draws random numbers of torch: training could not be repeated."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        # Attention and recurrent layers draw for their dropout alone, which may be zero.
        dropout = {"dropout", "dropout_p"} & set(names)
        draws = not dropout or any(given.get(name) for name in dropout)
        if draws and torch.Tag.nondeterministic_seeded in func.tags:
            raise BezoarError(
                f"model: in training it draws from torch's global generator, as dropout does "
                f"({func}), so that training could not be repeated; allowed: modules that do not"
            )
        return func(*args, **(kwargs or {}))


class Lender:
    """Lends a thread a copy of a model for itself."""

    def __init__(self, model: FlatModel) -> None:
        self._model = model
        self._idle: list[FlatModel] = []

    @contextmanager
    def __call__(self, training: bool) -> Iterator[FlatModel]:
        """A model in training or in evaluation mode."""
        try:
            model = self._idle.pop()
        except IndexError:
            model = self._model.copy()
        if model.module.training != training:
            model.module.train(training)
        try:
            yield model
        finally:
            model.release()
            self._idle.append(model)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How far the numbers of a parameter lie from each other in memory."""
    if len(shape) == 4:
        _, inner, height, width = shape
        return (height * width * inner, 1, width * inner, inner)
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def average_model(
    module: nn.Module, models: Tensor, buffers: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The average of some agents' final models, on the CPU, as a module's ``state_dict`` has it.

    The module, one like those that were trained, loses its own parameters. The models ``[agents,
    D]`` and buffers ``[agents, …]`` are as a :class:`~bezoar.training.History` has them.
    """
    flat = FlatModel(module)
    size = len(flat.start)
    if not len(models) or models.shape[1:] != (size,):
        raise BezoarError(
            f"models: expected those of one agent or more, with {size} parameters each, found the "
            f"shape {list(models.shape)}"
        )
    if missing := {BUFFERS + name for name in flat.initial_buffers} - set(buffers):
        raise BezoarError(f"buffers: expected {', '.join(sorted(missing))} too, found no such")
    weights = torch.full((1, len(models)), 1 / len(models), dtype=torch.float64)
    together = {name.removeprefix(BUFFERS): values.unsqueeze(0) for name, values in buffers.items()}
    pooled = {name: values[0] for name, values in pool_buffers(together, weights).items()}
    flat.bind(flat.in_memory(models.mean(0)), pooled)
    return {
        name: values.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, values in module.state_dict().items()
    }


def operations_of(module: nn.Module, shape: Sequence[int]) -> int:
    """The floating-point operations of a module on the meta device for one sample of a shape."""
    # Imported here because it takes a while, and only planning needs it.
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        module(torch.empty(1, *shape, device="meta"))
    return counter.get_total_flops()
