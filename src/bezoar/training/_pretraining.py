"""Central training, for agents that start from a trained model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from bezoar import networks
from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne, Part, Positive, Share
from bezoar._seeds import Purpose, generator
from bezoar.aggregators import Mean
from bezoar.attacks import LabelFlip
from bezoar.data import Dataset, partition
from bezoar.models import ModelFactory
from bezoar.training._engine import Engine
from bezoar.training._network_task import NetworkTask
from bezoar.training._optimizers import HeavyBall, Nesterov
from bezoar.training._run import Run
from bezoar.training._schedules import Decay, OneCycle
from bezoar.training._workers import Workers

#: A batch is computed in so many parts side by side.
PARTS = 4


@dataclass(frozen=True)
class Pretraining(Part):
    """Stochastic gradient descent on all training samples, with their true labels.

    The average of agents that all hear each other follows central training, so that is what it is:
    four agents, each with a quarter of every batch, and the mean of their models after every
    update. Batch norm takes statistics over a quarter of a batch.

    Args:
        epochs: how often every sample is taken.
        batch: samples in a batch, a multiple of 4.
        step: the largest step size of the cycle, see :class:`~bezoar.training.OneCycle`.
        warm_up: the share of updates until it is reached.
        decay: how step sizes fall afterwards.
        momentum: how much of the momentum stays.
        nesterov: whether momentum is Nesterov's or the heavy ball's.
        weight_decay: added to the gradient, times the model.
        augment: whether images are cropped and mirrored at random.
    """

    name: ClassVar[str] = "pretraining"

    epochs: AtLeastOne = 12
    batch: Annotated[int, Field(ge=PARTS, multiple_of=PARTS)] = 128
    step: Positive = 0.1
    warm_up: Share = 0.2
    decay: Decay = "cosine"
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    nesterov: bool = True
    weight_decay: Annotated[float, Field(ge=0)] = 5e-4
    augment: bool = True

    def train(
        self,
        model: ModelFactory,
        dataset: Dataset,
        *,
        seed: int = 0,
        workers: Workers | None = None,
        device: str = "cpu",
        progress: Callable[[int, int, float], Any] | None = None,
    ) -> tuple[dict[str, Tensor], float]:
        """Train a module; the same bits with any number of workers.

        Args:
            model: makes the module.
            dataset: the samples.
            seed: the first parameters, batches and augmentation follow from it.
            workers: the threads that share the work; by default as many as there are cores.
            device: a torch device.
            progress: called after every update with how many are done, how many there are, and
                the mean cross-entropy over the batch.

        Returns:
            The module's state dict, and its test accuracy.
        """
        if workers is None:
            with Workers() as own:
                return self.train(
                    model, dataset, seed=seed, workers=own, device=device, progress=progress
                )
        task = NetworkTask(
            dataset,
            partition("iid")(
                dataset.train_labels, dataset.classes, PARTS, generator(seed, Purpose.PARTITION)
            ),
            [self._run(seed)],
            workers,
            model=model,
            batch=self.batch // PARTS,
            augment=self.augment,
            threads=1,
            device=device,
        )
        updates = max(1, self.epochs * len(dataset.train) // self.batch)
        engine = Engine(task, iterations=updates, every=updates, metrics=("accuracy",))
        state = engine.start()
        while state.iteration < updates:
            state = engine.step(state)
            if progress is not None:
                progress(state.iteration, updates, float(task.costs.mean()))
        trained = task.state_dict(state)
        if not all(bool(values.isfinite().all()) for values in trained.values()):
            raise BezoarError(
                f"step: pretraining with {self.step} ended in numbers that are not finite; "
                "allowed: smaller ones"
            )
        return trained, float(engine.measure(state)["accuracy"])

    def _run(self, seed: int) -> Run:
        momentum = Nesterov if self.nesterov else HeavyBall
        return Run(
            networks.create("complete", agents=PARTS, poisoned=0),
            Mean(),
            LabelFlip(),  # nobody is poisoned
            OneCycle(self.step, self.warm_up, self.decay),
            self.weight_decay,
            seed,
            momentum(self.momentum),
        )
