"""The samples and labels of every agent, as torch modules take them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor

from bezoar._arrays import Bools, Ints
from bezoar._seeds import Purpose, generator
from bezoar.attacks import Attack, LabelAttack, OwnData
from bezoar.data import Dataset
from bezoar.training._task import DatasetTask

#: Pixels added on every side before an image is cropped to its size again.
PADDING = 4


@dataclass(frozen=True)
class Labels:
    """The labels of some samples, as one agent in one run holds them.

    They are in ``held [n]``. Where ``dynamic [n]`` is true, the attack chooses others instead, by
    the scores that its judge gives; if ``dynamic`` is ``None``, it chooses none.
    """

    held: Tensor
    dynamic: Tensor | None
    attack: Attack

    def by(self, scores: Tensor) -> Tensor:
        """``[n]`` the labels that the agent trains with, by scores ``[n, classes]``."""
        if self.dynamic is None:
            return self.held
        chosen = self.attack.on_scores(scores.detach().T).squeeze(0)
        return torch.where(self.dynamic, chosen, self.held)

    def decided(self, scores: Tensor) -> "Labels":
        """The same, with nothing left for the attack to decide; by scores ``[n, classes]``."""
        return Labels(self.by(scores), None, self.attack)

    def some(self, part: slice) -> "Labels":
        """The labels of some of the samples."""
        dynamic = None if self.dynamic is None else self.dynamic[part]
        return Labels(self.held[part], dynamic, self.attack)


class AgentSamples:
    """What agents train on; samples stay where the dataset has them until they are needed."""

    def __init__(self, task: DatasetTask) -> None:
        self._dataset, self._partition, self._runs = task.dataset, task.partition, task.runs
        self._dtype, self._device = task.dtype, task.device
        self._poisoned = {(run, agent): held for run, agent, *held in poisoned_labels(task)}
        self._stamped = {(run, agent): stamped for run, agent, stamped in stamped_samples(task)}

    def inputs(
        self, agent: int, places: Ints, augmentation: np.random.Generator | None = None
    ) -> Tensor:
        """``[n, …]`` some of an agent's samples, augmented if random choices are given."""
        samples = self._dataset.train[self._partition.samples(agent)[places]]
        if augmentation is not None:
            samples = crop_and_flip(samples, augmentation)
        return as_inputs(samples, self._dtype, self._device)

    def held(
        self, run: int, agent: int, places: Ints, iteration: int, inputs: Tensor
    ) -> tuple[Tensor, Labels]:
        """Inputs and labels as an agent holds them in one iteration of one run.

        ``inputs [n, …]`` are what :meth:`inputs` gave for the same places; some may get a patch.
        """
        attack, stamped = self._runs[run].attack, self._stamped.get((run, agent))
        if stamped is not None and attack.active(iteration):
            here = self._to_device(stamped[places]).view(-1, *[1] * (inputs.ndim - 1))
            patch = self._to_device(attack.patch(tuple(inputs.shape[1:])))
            inputs = torch.where(here & patch, inputs.new_ones(()), inputs)
        return inputs, self.labels(run, agent, places, iteration)

    def labels(self, run: int, agent: int, places: Ints, iteration: int) -> Labels:
        """The labels of some of an agent's samples in one iteration of one run."""
        attack = self._runs[run].attack
        poisoned = self._poisoned.get((run, agent))
        if poisoned is None or not attack.active(iteration):
            true = self._dataset.train_labels[self._partition.samples(agent)[places]]
            return Labels(self._to_device(true), None, attack)
        labels, dynamic = (values[places] for values in poisoned)
        chosen = self._to_device(dynamic) if dynamic.any() else None
        return Labels(self._to_device(labels), chosen, attack)

    def tests(self, places: slice, dataset: Dataset) -> tuple[Tensor, Tensor]:
        """``[n, …]`` some test samples of a dataset, and ``[n]`` their labels."""
        images = as_inputs(np.array(dataset.test[places]), self._dtype, self._device)
        return images, self._to_device(dataset.test_labels[places])

    def _to_device(self, numbers: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.array(numbers)).to(self._device)


def poisoned_labels(task: DatasetTask) -> Iterator[tuple[int, int, Ints, Bools]]:
    """Every run and poisoned agent in it, with the labels that the agent trains with.

    The last array is true where the attack instead chooses a label anew in every iteration. All
    other agents have the true labels.
    """
    dataset = task.dataset
    for number, run in enumerate(task.runs):
        for agent, member in enumerate(task.members):
            if run.network.poisoned_mask[member]:
                places = task.partition.samples(agent)
                own = OwnData(dataset.train, dataset.train_labels, places, dataset.classes)
                rng = generator(run.seed, Purpose.ATTACK, member)
                yield number, agent, *run.attack.on_labels(own, rng)


def stamped_samples(task: DatasetTask) -> Iterator[tuple[int, int, Bools]]:
    """Every run and poisoned agent whose samples get a patch, and ``[n]`` which of them do."""
    for number, run in enumerate(task.runs):
        attack = run.attack
        if not isinstance(attack, LabelAttack) or not attack.triggers:
            continue
        for agent, member in enumerate(task.members):
            if run.network.poisoned_mask[member]:
                labels = task.dataset.train_labels[task.partition.samples(agent)]
                rng = generator(run.seed, Purpose.ATTACK, member)
                yield number, agent, attack.touched(labels, rng)


def as_inputs(samples: NDArray[np.generic], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Samples as a tensor, channels last in memory; uint8 pixels are scaled to [−1, 1]."""
    values = torch.from_numpy(samples).to(device).to(dtype)
    if values.ndim == 4:
        values = values.contiguous(memory_format=torch.channels_last)
    return values.mul_(2 / 255).sub_(1) if samples.dtype == np.uint8 else values


def crop_and_flip(images: NDArray[np.generic], rng: np.random.Generator) -> NDArray[np.generic]:
    """Move images ``[n, channels, height, width]`` by up to four pixels, mirror half, at random.

    An image is padded with zeros (black pixels) and mirrored left to right with probability one
    half; then a part of its former size is cut out, each as likely.
    """
    count, channels, height, width = images.shape
    down, right = rng.integers(0, 2 * PADDING + 1, size=(2, count))
    mirrored = rng.integers(0, 2, size=count) == 1
    larger = (count, channels, height + 2 * PADDING, width + 2 * PADDING)
    padded = np.zeros(larger, images.dtype)
    padded[:, :, PADDING:-PADDING, PADDING:-PADDING] = images
    padded[mirrored] = padded[mirrored, ..., ::-1]
    windows = sliding_window_view(padded, (height, width), axis=(2, 3))
    return windows[np.arange(count), :, down, right]
