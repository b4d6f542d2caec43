"""Where a training stands, so that it can go on after the process that ran it has died."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar.networks import Network
from bezoar.training._run import Problem, Run

#: The version of the file's layout.
FORMAT = 1

#: An iteration and ``[runs]`` values of each metric after it.
Taken = tuple[int, dict[str, Tensor]]


class CheckpointError(BezoarError):
    """A checkpoint cannot be gone on from: it is damaged, or was made in another training."""


@dataclass(frozen=True)
class Checkpoint:
    """A training between two iterations, with all that the rest of it depends on.

    Labels, partitions and step sizes follow from the runs and the iteration's number, and no rule
    remembers anything from one exchange to the next: models and what was measured so far are
    enough to end in the same bits as a training that was never interrupted.

    Attributes:
        iteration: how many iterations are done.
        models: ``[runs, agents, …]`` in the order of the engine's ``runs``. The engine's own
            memory, not a copy: valid until the next iteration begins.
        taken: what was measured so far; runs in the same order. Valid as long as the models.
        subject: what is trained, in words, to tell other trainings from this one: see
            :func:`subject_of`.
    """

    iteration: int
    models: Tensor
    taken: Sequence[Taken]
    subject: tuple[str, ...]

    def save(self, path: Path) -> None:
        """Write a safetensors file, which is there whole or not at all.

        It takes as long as writing the models to the disk (9 MB for 27 runs of ten agents on
        MNIST: some 30 ms), and twice their memory meanwhile.
        """
        names = list(self.taken[0][1])
        tensors = {
            "models": self.models.contiguous(),
            "iterations": torch.tensor([iteration for iteration, _ in self.taken]),
            **{
                _column(name): torch.stack([values[name] for _, values in self.taken])
                for name in names
            },
        }
        metadata = {
            "format": str(FORMAT),
            "iteration": str(self.iteration),
            "metrics": json.dumps(names),
            "subject": json.dumps(self.subject),
        }
        write_whole(path, save({key: t.cpu() for key, t in tensors.items()}, metadata))

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Read what :meth:`save` wrote.

        Raises:
            CheckpointError: where the file is not a whole checkpoint, or of a newer layout.
            OSError: where it cannot be read at all.
        """
        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != str(FORMAT):
                    raise CheckpointError(
                        f"checkpoint: {path} has the format {metadata.get('format')}; this "
                        f"version of bezoar reads {FORMAT}"
                    )
                names = json.loads(metadata["metrics"])
                columns = {name: file.get_tensor(_column(name)).clone() for name in names}
                iterations = file.get_tensor("iterations").tolist()
                return cls(
                    int(metadata["iteration"]),
                    file.get_tensor("models").clone(),
                    [
                        (iteration, {name: column[place] for name, column in columns.items()})
                        for place, iteration in enumerate(iterations)
                    ],
                    tuple(json.loads(metadata["subject"])),
                )
        except (SafetensorError, LookupError, json.JSONDecodeError) as error:
            raise CheckpointError(f"checkpoint: {path} is damaged: {error}") from None

    def check(self, subject: Sequence[str], models: Tensor) -> None:
        """Refuse to go on with another training than the one this was made in.

        Args:
            subject: what is to be trained.
            models: ``[runs, agents, …]`` like those to be trained.

        Raises:
            CheckpointError: with what was expected and what was found.
        """
        for expected, found in zip_longest(subject, self.subject, fillvalue="nothing"):
            if expected != found:
                raise CheckpointError(
                    f"checkpoint: it was made in another training; expected {expected}, "
                    f"found {found}"
                )
        if (self.models.shape, self.models.dtype) != (models.shape, models.dtype):
            raise CheckpointError(
                f"checkpoint: expected models {list(models.shape)} of {models.dtype}, found "
                f"{list(self.models.shape)} of {self.models.dtype}"
            )


def subject_of(problem: Problem, runs: Sequence[Run]) -> tuple[str, ...]:
    """A training in words: first what the runs share, then each run."""
    data = "costs of its own"
    if problem.dataset is not None and problem.partition is not None:
        dealt = crc32(problem.partition.order.data)
        dealt = crc32(problem.partition.offsets.data, dealt)
        data = f"{problem.dataset.name} dealt out as {dealt:08x}"
    metrics = ", ".join(problem.metrics)
    return (
        f"{problem.iterations} iterations on {data} in {problem.dtype}, every {problem.every} "
        f"measuring {metrics or 'nothing'}",
        *(
            f"{run.aggregator!r} on {run.network!r} wired as {_wiring(run.network):08x} against "
            f"{run.attack!r} with {run.schedule!r}, weight decay {run.weight_decay}, "
            f"seed {run.seed}"
            for run in runs
        ),
    )


def _wiring(network: Network) -> int:
    """A checksum of who is linked to whom."""
    links = network.adjacency
    return crc32(links.indices.astype(np.int64).data, crc32(links.indptr.astype(np.int64).data))


def _column(metric: str) -> str:
    return f"metrics/{metric}"
