"""The local updates of all agents: ``y = x − γ d``."""

import torch
from torch import Tensor

from bezoar.training._run import State
from bezoar.training._task import Task

#: Bytes of models updated at a time, so that several operations find them in the cache.
PIECE_BYTES = 1 << 20


class LocalUpdates:
    """What the runs' optimisers, step sizes and weight decays make of gradients.

    Args:
        task: the runs, and the threads that share the work.
        iterations: the number of iterations, ``K``.
    """

    def __init__(self, task: Task, iterations: int) -> None:
        self._runs, self._workers, self._iterations = task.runs, task.workers, iterations
        self._names = tuple(dict.fromkeys(n for run in task.runs for n in run.optimizer.remembers))

    def start(self, models: Tensor) -> dict[str, Tensor]:
        """What the optimisers remember, before the first iteration."""
        return {name: torch.zeros_like(models) for name in self._names}

    def __call__(self, state: State, gradients: Tensor, iteration: int) -> Tensor:
        """The messages, in the memory of the gradients; what is remembered is brought forward."""
        models = state.models
        size = models[0, 0].numel() * models.element_size()
        some = max(1, PIECE_BYTES // size)
        pieces = [
            (run, slice(first, first + some))
            for run in range(len(models))
            for first in range(0, models.shape[1], some)
        ]

        def update(piece: tuple[int, slice]) -> None:
            number, agents = piece
            run = self._runs[number]
            own, gradient = models[number, agents], gradients[number, agents]
            if run.weight_decay:
                gradient.add_(own, alpha=float(run.weight_decay))
            memory = {name: state.tensors[name][number, agents] for name in run.optimizer.remembers}
            direction = run.optimizer.direction(gradient, memory)
            step = float(run.schedule(iteration, self._iterations))
            torch.sub(own, direction, alpha=step, out=gradient)

        self._workers.map(update, pieces)
        return gradients
