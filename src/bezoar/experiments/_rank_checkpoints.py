"""Checkpoints of trainings at several ranks: a file for each, all after the same iteration."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from bezoar.experiments._elsewhere import WORTH
from bezoar.store import Store
from bezoar.training import Checkpoint, CheckpointError, Engine, Ranks


class RankCheckpoints:
    """Writes this rank's part of a training's state, and agrees with others where to go on.

    A rank removes its last file only when all ranks have written the next one. So whenever ranks
    are killed, there is an iteration after which all of them have a file.

    Args:
        store: where the files are.
        name: what their names begin with.
        ranks: who trains together.
        seconds: training that may be lost when a process dies.
    """

    def __init__(self, store: Store, name: Path, ranks: Ranks, seconds: float) -> None:
        self._store, self._name, self._ranks, self._seconds = store, name, ranks, seconds
        self._end = f"-{ranks.number}-of-{ranks.count}.safetensors"

    def last(self, engine: Engine) -> Checkpoint | None:
        """Where all ranks stood when they were last written; ``None`` to start over."""
        # Two at the most; see above.
        own = [*sorted(self._files(), reverse=True), -1, -1][:2]
        common = set.intersection(*map(set, self._ranks.numbers(own))) - {-1}
        if not common:
            self._remove()
            return None
        found = self._load(max(common))
        fits = found is not None and engine.fits(found)
        if int(self._ranks.sum(torch.tensor([int(not fits)]))) > 0:
            self._remove()
            return None
        self._remove(but=max(common))
        return found

    def keeper(self, iterations: int) -> Callable[[Checkpoint], None]:
        """A function that writes checkpoints now and then, and when training is done."""
        last, pause = time.monotonic(), self._seconds

        def keep(checkpoint: Checkpoint) -> None:
            nonlocal last, pause
            done, before = checkpoint.iteration == iterations, time.monotonic()
            if not self._ranks.decide(lambda: done or before - last >= pause):
                return
            with self._store.writing():
                checkpoint.save(self._file(checkpoint.iteration))
            self._ranks.sum(torch.zeros(1))  # nobody goes on before all have written
            self._remove(but=checkpoint.iteration)
            last = time.monotonic()
            pause = max(self._seconds, WORTH * (last - before))

        return keep

    def clear(self) -> None:
        """Remove this rank's files, and the folder if nothing else is in it."""
        self._remove()
        with suppress(OSError):
            self._name.parent.rmdir()

    def _file(self, iteration: int) -> Path:
        return self._name.with_name(f"{self._name.name}-{iteration}{self._end}")

    def _files(self) -> dict[int, Path]:
        """This rank's files, by iteration."""
        pattern = re.compile(re.escape(self._name.name) + r"-(\d+)" + re.escape(self._end))
        folder = self._name.parent
        found = folder.iterdir() if folder.is_dir() else ()
        matches = ((pattern.fullmatch(path.name), path) for path in found)
        return {int(match[1]): path for match, path in matches if match}

    def _load(self, iteration: int) -> Checkpoint | None:
        try:
            return Checkpoint.load(self._file(iteration))
        except (CheckpointError, OSError):
            return None

    def _remove(self, but: int | None = None) -> None:
        for iteration, path in self._files().items():
            if iteration != but:
                path.unlink(missing_ok=True)
