"""The local updates of all agents: ``y = x − γ d``."""

from math import inf

import torch
from torch import Tensor

from bezoar.training._run import State
from bezoar.training._task import Task

#: Bytes of models updated at a time, so that several operations find them in the cache.
PIECE_BYTES = 1 << 20


class LocalUpdates:
    """What the runs' optimisers, step sizes and weight decays make of gradients."""

    def __init__(self, task: Task, iterations: int) -> None:
        self._runs, self._workers, self._iterations = task.runs, task.workers, iterations
        #: What the optimisers keep in the state.
        self.names = tuple(dict.fromkeys(n for run in task.runs for n in run.optimizer.remembers))

    def start(self, models: Tensor) -> dict[str, Tensor]:
        """What the optimisers remember, before the first iteration."""
        return {name: torch.zeros_like(models) for name in self.names}

    def __call__(self, state: State, gradients: Tensor, iteration: int) -> Tensor:
        """The messages, in the memory of the gradients; what is remembered is updated in place."""
        tensors = {name: state.tensors[name].flatten(2) for name in ("models", *self.names)}
        models, flat = tensors["models"], gradients.flatten(2)

        def update(piece: tuple[int, slice, slice]) -> None:
            run = self._runs[piece[0]]
            own, gradient = models[piece], flat[piece]
            if run.weight_decay:
                gradient.add_(own, alpha=_as(own.dtype, run.weight_decay))
            memory = {name: tensors[name][piece] for name in run.optimizer.remembers}
            direction = run.optimizer.direction(gradient, memory)
            step = _as(own.dtype, run.schedule(iteration, self._iterations))
            torch.sub(own, direction, alpha=step, out=gradient)

        self._workers.map(update, _pieces(models))
        return gradients


def _pieces(models: Tensor) -> list[tuple[int, slice, slice]]:
    """Runs, agents and coordinates of ``[runs, agents, D]`` that fill a piece of the cache."""
    runs, agents, length = models.shape
    most = PIECE_BYTES // models.element_size()
    some, width = max(1, most // length), min(length, most)
    return [
        (run, slice(first, first + some), slice(start, start + width))
        for run in range(runs)
        for first in range(0, agents, some)
        for start in range(0, length, width)
    ]


def _as(dtype: torch.dtype, factor: float) -> float:
    """A factor as models of a type can be multiplied with it: too large a one is infinite."""
    value = float(factor)
    return value if abs(value) <= torch.finfo(dtype).max else value * inf
