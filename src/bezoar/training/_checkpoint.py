"""Where a training stands, so that it can go on after the process that ran it has died."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar.training._algorithms import AdaptThenCombine
from bezoar.training._run import State

if TYPE_CHECKING:
    from bezoar.training._engine import Engine

#: The version of the file's layout.
FORMAT = 2

#: An iteration and the values of each metric after it: ``[runs]``, or ``[runs, agents]``.
Measured = tuple[int, dict[str, Tensor]]

#: A safetensors file begins with the length of its header, a number of this many bytes.
_LENGTH = 8

_STATE, _METRICS, _ITERATIONS = "state/", "metrics/", "iterations"


class CheckpointError(BezoarError):
    """Training cannot go on from a checkpoint: it is damaged, or of another training."""


@dataclass(frozen=True)
class Checkpoint:
    """A training between two iterations, with all that the rest of it depends on.

    Labels, partitions and random choices follow from the runs and the iteration's number, so the
    state and what was measured so far are enough to end in the same bits as a training that was
    never interrupted.

    Attributes:
        state: where the training stands. The engine's own memory, not a copy: valid until the next
            iteration begins.
        measured: what was measured so far. Valid as long as the state.
        subject: what is trained, to tell other trainings from this one: see :func:`subject_of`.
    """

    state: State
    measured: Sequence[Measured]
    subject: tuple[str, ...]

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return self.state.iteration

    def save(self, path: Path) -> None:
        """Write a safetensors file, which is there whole or not at all.

        It takes as long as writing the state to the disk (9 MB for 27 runs of ten agents on
        MNIST: some 30 ms), and twice its memory meanwhile.
        """
        write_whole(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of the file that :meth:`save` writes."""
        names = list(self.measured[0][1])
        tensors = {_STATE + name: t.contiguous() for name, t in self.state.tensors.items()}
        tensors[_ITERATIONS] = torch.tensor([iteration for iteration, _ in self.measured])
        for name in names:
            tensors[_METRICS + name] = torch.stack([values[name] for _, values in self.measured])
        metadata = {
            "format": str(FORMAT),
            "iteration": str(self.iteration),
            "metrics": json.dumps(names),
            "state": json.dumps(list(self.state.tensors)),
            "subject": json.dumps(self.subject),
        }
        return save({key: t.cpu() for key, t in tensors.items()}, metadata)

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Read what :meth:`save` wrote.

        Raises:
            CheckpointError: where the file is not a whole checkpoint, or of another layout.
            OSError: where it cannot be read at all.
        """
        return cls.from_bytes(path.read_bytes(), str(path))

    @classmethod
    def from_bytes(cls, content: bytes, where: str = "what was received") -> Checkpoint:
        """Read what :meth:`to_bytes` gave.

        Raises:
            CheckpointError: where it is not a whole checkpoint, or of another layout. It says
                ``where`` the content is from.
        """
        try:
            found = load(content)
            header = content[_LENGTH : _LENGTH + int.from_bytes(content[:_LENGTH], "little")]
            metadata = json.loads(header).get("__metadata__", {})
            if metadata.get("format") != str(FORMAT):
                raise CheckpointError(
                    f"checkpoint: {where} has the format {metadata.get('format')}; this version "
                    f"of bezoar reads {FORMAT}"
                )
            columns, tensors = (
                {name: found[prefix + name] for name in json.loads(names)}
                for prefix, names in ((_METRICS, metadata["metrics"]), (_STATE, metadata["state"]))
            )
            measured = [
                (iteration, {name: column[place] for name, column in columns.items()})
                for place, iteration in enumerate(found[_ITERATIONS].tolist())
            ]
            state = State(int(metadata["iteration"]), tensors)
            return cls(state, measured, tuple(json.loads(metadata["subject"])))
        except CheckpointError:
            raise
        except (SafetensorError, LookupError, TypeError, ValueError) as error:
            raise CheckpointError(f"checkpoint: {where} is damaged: {error}") from None

    def check(self, subject: Sequence[str], state: State) -> None:
        """Refuse to go on with another training than the one this was made in.

        ``subject`` and ``state`` are those of the training that would go on.
        """
        for expected, found in zip_longest(subject, self.subject, fillvalue="nothing"):
            if expected != found:
                raise CheckpointError(
                    f"checkpoint: it was made in another training; expected {expected}, "
                    f"found {found}"
                )
        for name in dict.fromkeys([*state.tensors, *self.state.tensors]):
            wanted, held = (_told(part.tensors.get(name)) for part in (state, self.state))
            if wanted != held:
                raise CheckpointError(f"checkpoint: expected {name} {wanted}, found {held}")


def subject_of(engine: Engine) -> tuple[str, ...]:
    """A training in words: first what the runs share, then each run, in full."""
    taken = [metric.name for metric in engine.meter.metrics]
    metrics = ", ".join(taken + ["those of single agents"] * bool(engine.meter.of_agents))
    listening = "".join(f", who listened to whom after {k}" for k in engine.listening)
    changes = [f"{engine.steps} local steps"] * (engine.steps > 1)
    changes += [f"{engine.rounds} rounds"] * (engine.rounds > 1)
    changes += [repr(engine.algorithm)] * (engine.algorithm != AdaptThenCombine())
    variant = f" with {', '.join(changes)}" if changes else ""
    return (
        f"{engine.iterations} iterations{variant} of {engine.task.identity()} in "
        f"{engine.task.dtype}, every {engine.every} measuring {metrics or 'nothing'}{listening}",
        *(
            f"{run.aggregator!r} on network {run.network.identity(engine.iterations)} against "
            f"{run.attack!r} with {run.optimizer!r}, {run.schedule!r}, weight decay "
            f"{run.weight_decay}, seed {run.seed}"
            for run in engine.runs
        ),
    )


def _told(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else f"{list(tensor.shape)} of {tensor.dtype}"
