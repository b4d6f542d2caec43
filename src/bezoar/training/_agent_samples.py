"""The samples and labels of every agent, as torch modules take them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar.attacks import Attack
from bezoar.data import Dataset, Partition
from bezoar.training._augment import crop_and_flip
from bezoar.training._poisoned_labels import poisoned_labels
from bezoar.training._run import Run

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """The labels of some samples, as one agent in one run holds them.

    Attributes:
        held: ``[n]`` the labels.
        dynamic: ``[n]`` where the attack decides instead, by the agent's scores; ``None`` if
            nowhere.
        attack: the attack of the run.
    """

    held: Tensor
    dynamic: Tensor | None
    attack: Attack

    def by(self, scores: Tensor) -> Tensor:
        """``[n]`` the labels that the agent trains with, from its scores ``[n, classes]``."""
        if self.dynamic is None:
            return self.held
        chosen = self.attack.on_scores(scores.detach().T).squeeze(0)
        return torch.where(self.dynamic, chosen, self.held)

    def some(self, part: slice) -> "Labels":
        """The labels of some of the samples."""
        dynamic = None if self.dynamic is None else self.dynamic[part]
        return Labels(self.held[part], dynamic, self.attack)


class AgentSamples:
    """What every agent trains on; samples stay where the dataset has them until they are needed.

    Args:
        dataset: the samples.
        partition: who holds which.
        runs: the runs, whose attacks poison labels.
        dtype: the type of the inputs.
        device: where the inputs will be.
    """

    def __init__(
        self,
        dataset: Dataset,
        partition: Partition,
        runs: Sequence[Run],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._dataset, self._partition, self._runs = dataset, partition, runs
        self._dtype, self._device = dtype, device
        self._poisoned = {
            (held.run, held.agent): held for held in poisoned_labels(dataset, partition, runs)
        }

    def inputs(
        self, agent: int, places: Ints, augmentation: np.random.Generator | None = None
    ) -> Tensor:
        """``[n, …]`` some of an agent's samples, augmented if random choices are given."""
        samples = self._dataset.train[self._partition.samples(agent)[places]]
        if augmentation is not None:
            samples = crop_and_flip(samples, augmentation)
        return as_inputs(samples, self._dtype, self._device)

    def labels(self, run: int, agent: int, places: Ints) -> Labels:
        """The labels of some of an agent's samples in one run."""
        attack = self._runs[run].attack
        poisoned = self._poisoned.get((run, agent))
        if poisoned is None:
            true = self._dataset.train_labels[self._partition.samples(agent)[places]]
            return Labels(self._to_device(true), None, attack)
        dynamic = poisoned.dynamic[places]
        return Labels(
            self._to_device(poisoned.labels[places]),
            self._to_device(dynamic) if dynamic.any() else None,
            attack,
        )

    def tests(self, places: slice) -> tuple[Tensor, Tensor]:
        """``[n, …]`` some test samples, and ``[n]`` their labels."""
        images = as_inputs(np.array(self._dataset.test[places]), self._dtype, self._device)
        return images, self._to_device(self._dataset.test_labels[places])

    def _to_device(self, numbers: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.array(numbers)).to(self._device)


def as_inputs(samples: NDArray[np.generic], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Samples as a tensor, channels last in memory; uint8 pixels are scaled to [−1, 1]."""
    values = torch.from_numpy(samples).to(device).to(dtype)
    if values.ndim == 4:
        values = values.contiguous(memory_format=torch.channels_last)
    return values.mul_(2 / 255).sub_(1) if samples.dtype == np.uint8 else values


def data_identity(dataset: Dataset, partition: Partition) -> str:
    """A checksum of the data and of who holds what."""
    digest = hashlib.sha256(dataset.fingerprint.encode())
    for part in (partition.order, partition.offsets):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
