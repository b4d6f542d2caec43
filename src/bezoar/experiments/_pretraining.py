"""The run that a pretrained start comes from."""

from bezoar.data import Dataset
from bezoar.experiments._made import part
from bezoar.experiments._spec import RunSpec
from bezoar.models import Pretrained

#: How many agents share a batch.
AGENTS = 4


def pretraining(spec: RunSpec, dataset: Dataset) -> RunSpec | None:
    """The spec of the run whose final model a run starts from; ``None`` if it needs none.

    The average of agents that all hear each other follows central training, so that is what it is:
    four agents, each with a quarter of every batch, and the mean of their models after every
    update. Nobody is poisoned. Its bits do not depend on the number of threads.

    Args:
        spec: the run that starts.
        dataset: its data.
    """
    start = part(spec.start)
    if not isinstance(start, Pretrained):
        return None
    epoch = -(-len(dataset.train) // start.batch)
    return RunSpec.read(
        {
            "dataset": spec.dataset,
            "samples": spec.samples,
            "model": spec.model,
            "network": {"name": "complete", "agents": AGENTS, "poisoned": 0},
            "aggregator": "mean",
            "optimizer": {"name": "nesterov", "beta": start.beta},
            "schedule": {"name": "one_cycle", "scale": start.step},
            "weight_decay": start.weight_decay,
            "batch": start.batch // AGENTS,
            "augment": start.augment,
            "iterations": start.epochs * epoch,
            "every": epoch,
            "metrics": ("accuracy", "test_loss"),
            "dtype": spec.dtype,
            "device": spec.device,
            "seed": start.seed,
            "keep_models": True,
        }
    )
