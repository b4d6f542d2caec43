"""What training a neural network takes."""

import torch

from bezoar.data import Dataset
from bezoar.models import ModelFactory
from bezoar.training._task import DTYPES, Cost


def network_cost(
    dataset: Dataset,
    agents: int,
    dtype: str,
    remembered: int = 0,
    *,
    model: ModelFactory,
    batch: int = 32,
    local_steps: int = 1,
    gradient_samples: int | None = None,
) -> Cost:
    """What a run takes; only products and convolutions are counted.

    The first arguments are those of :meth:`SoftmaxTask.cost`, the others those of the task.
    """
    # Imported here because it takes a while, and only planning needs it.
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"):
        module = model().eval()
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        module(torch.empty(1, *dataset.train.shape[1:], device="meta"))
    sample = counter.get_total_flops() * (2 if dtype == "float64" else 1)
    size = sum(p.numel() for p in module.parameters())
    measured = len(dataset.train)
    if gradient_samples is not None:
        measured = min(measured, agents * gradient_samples)
    more = remembered + (local_steps > 1)
    return Cost(
        bytes=(2 + more) * DTYPES[dtype].itemsize * agents * size,
        step=3 * sample * agents * batch * local_steps,  # forward, and twice as much backward
        test=sample * len(dataset.test),
        gradients=3 * sample * measured,
    )
