"""Sweeps: many runs into a store, whatever happens in between."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from filelock import Timeout

from bezoar._errors import LostRankError
from bezoar.experiments._grid import as_specs
from bezoar.experiments._identity import versions
from bezoar.experiments._plan import Failure, Plan, make_plan, reason_for
from bezoar.experiments._provenance import provenance
from bezoar.experiments._spec import RunSpec
from bezoar.store import Finished, Group, Store, StoredRun, StoreError

if TYPE_CHECKING:
    from torch import Tensor

    from bezoar.experiments._prepare import Prepared, Report, Tensors
    from bezoar.training import Checkpoint, History

#: Seconds between two looks at whether another sweep has finished what this one waits for.
PATIENCE = 0.5

#: Training between two checkpoints takes at least this many times as long as writing one.
WORTH = 20


class Executor(Protocol):
    """Who trains a group of runs."""

    def __call__(
        self,
        runs: "Sequence[Prepared]",
        progress: "Report | None" = None,
        start: "Checkpoint | None" = None,
        keep: "Callable[[Checkpoint], Any] | None" = None,
        trained: "Tensors | None" = None,
    ) -> "list[History]":
        """Train runs together; see :func:`bezoar.experiments.train`."""


@contextmanager
def threads(workers: int | None = None) -> "Iterator[Executor]":
    """Trains in this process.

    Args:
        workers: how many threads; by default one a core. Results do not depend on it.
    """
    from bezoar.experiments._prepare import train
    from bezoar.training import Workers

    with Workers(workers) as pool:

        def execute(runs: "Sequence[Prepared]", *told: Any, **more: Any) -> "list[History]":
            return train(runs, pool, *told, **more)

        yield execute


class Watch:
    """Is told how a sweep goes; this one does nothing about it."""

    def planning(self, done: int, total: int) -> None:
        """So many specs were looked at."""

    def planned(self, plan: Plan) -> None:
        """The plan is made; the work begins."""

    def began(self, keys: Sequence[str], specs: Sequence[RunSpec], iteration: int) -> None:
        """A group's training begins, or goes on after so many iterations."""

    def advanced(
        self, keys: Sequence[str], iteration: int, metrics: "Mapping[str, Tensor]"
    ) -> None:
        """A group has done so many iterations; the latest metrics are ``[runs]`` each."""

    def ended(self, keys: Sequence[str], failed: bool) -> None:
        """A group's runs are in the store; or their training failed."""

    def said(self, message: str) -> None:
        """Something happened that a person may want to know."""


@dataclass(frozen=True)
class Swept:
    """What became of a sweep.

    Attributes:
        runs: for every spec, in their order, its finished run or why there is none.
        plan: what there was to do.
    """

    runs: list[StoredRun | Failure]
    plan: Plan

    @property
    def failures(self) -> list[Failure]:
        """The runs that could not be."""
        return [run for run in self.runs if isinstance(run, Failure)]

    @property
    def finished(self) -> list[StoredRun]:
        """The runs that are in the store."""
        return [run for run in self.runs if isinstance(run, StoredRun)]


def sweep(
    specs: Iterable[RunSpec] | Mapping[str, Any] | str | Path,
    store: Store | str | Path,
    executor: Executor | None = None,
    watch: Watch | None = None,
    checkpoint_seconds: float = 30.0,
) -> Swept:
    """Compute the runs that are not in the store yet, and return all of them.

    It may be killed at any moment and called again: finished runs stay, and what was under way
    goes on from its last checkpoint, with the bits it would have had. Several sweeps, in one or
    more processes, may share a store: a group of runs is trained by one of them.

    Args:
        specs: what to run: specs, the fields of a sweep as for :func:`expand`, or the path of a
            TOML file. A run that cannot be, or fails, does not stop the others.
        store: where runs are kept.
        executor: who trains a group of runs; by default this process, with one thread a core.
        watch: is told how it goes.
        checkpoint_seconds: training that may be lost when the process dies. Writing checkpoints
            never takes more than a twentieth of the time of training.

    Raises:
        StoreError: where the store cannot be written, as when the disk is full. What was finished
            is kept; the next call goes on.
    """
    wanted = as_specs(specs)
    store = store if isinstance(store, Store) else Store(store)
    watch = watch or Watch()
    plan = make_plan(wanted, store, lambda done: watch.planning(done, len(wanted)))
    watch.planned(plan)
    failed: dict[str, str] = {}
    if plan.groups:
        with threads() if executor is None else nullcontext(executor) as execute:
            work = _Work(store, execute, watch, checkpoint_seconds)
            work.do(plan)
            failed = work.failed
    # Remove what sweeps left that died after the last of a group's runs was saved.
    for group in store.begun_groups():
        if all(store.is_finished(key) for key in group.keys):
            with suppress(OSError):  # as in a store that can only be read
                group.remove()
    refused = iter(plan.refused)
    runs: list[StoredRun | Failure] = []
    for spec, key in zip(wanted, plan.keys, strict=True):
        if key is None:
            runs.append(next(refused))
        else:
            runs.append(Failure(spec, failed[key]) if key in failed else store.load(key))
    return Swept(runs, plan)


class _Work:
    """The work of a sweep, group by group.

    A group is trained by whoever holds its lock. Sweeps of the same specs train the same groups,
    whoever gets which, so their store has the same bits as that of one sweep alone.

    Attributes:
        failed: why runs failed, by key.
    """

    def __init__(self, store: Store, execute: Executor, watch: Watch, seconds: float) -> None:
        self.failed: dict[str, str] = {}
        self._finished: set[str] = set()
        self._store, self._execute, self._watch, self._seconds = store, execute, watch, seconds

    def do(self, plan: Plan) -> None:
        """Finish every run that is to do: it is in the store, or has failed."""
        for key in sorted(plan.broken):
            if aside := self._store.repair(key):
                self._watch.said(f"run {key} was damaged: set aside in {aside}, computed again")
        pending = [runs for runs in plan.groups if not self._finish(runs)]
        if pending:
            count = sum(not self._is_done(key) for runs in pending for key in runs)
            what = "a run" if count == 1 else f"{count} runs"
            self._watch.said(f"waiting for {what} that another sweep is computing")
        while pending:
            time.sleep(PATIENCE)
            pending = [runs for runs in pending if not self._finish(runs)]

    def _finish(self, runs: "Mapping[str, Prepared]") -> bool:
        """Train what is left of a planned group; ``False`` if somebody else is working on it."""
        for key, run in runs.items():
            if not self._is_done(key) and not self._finish_needed(key, run):
                return False
        while group := self._next(runs):
            try:
                with self._locked(group):
                    # What was seen before may be past: others may have finished or begun.
                    if group == self._next(runs):
                        self._train(group, runs)
            except Timeout:
                return False
        return True

    def _finish_needed(self, key: str, run: "Prepared") -> bool:
        """Train the run that a run starts from; ``False`` if somebody else is working on it."""
        needed = run.needs
        if needed is None:
            return True
        if not self._finish({needed.key: needed}):
            return False
        if needed.key in self.failed:
            self.failed[key] = f"start: its pretraining failed: {self.failed[needed.key]}"
        return True

    def _locked(self, group: Group) -> Any:
        with self._store.writing():
            return group.lock().acquire(blocking=False)

    def _next(self, runs: "Mapping[str, Prepared]") -> Group | None:
        """What to train: a group that was begun with one of the runs, or all that are left."""
        todo = {key: run for key, run in runs.items() if not self._is_done(key)}
        if not todo:
            return None
        for group in self._store.begun_groups():
            if not todo.keys().isdisjoint(group.keys):
                return group
        specs = [run.spec.document() for run in todo.values()]
        return self._store.group(todo, specs, versions())

    def _is_done(self, key: str) -> bool:
        if key not in self._finished and self._store.is_finished(key):
            self._finished.add(key)
        return key in self._finished or key in self.failed

    def _train(self, group: Group, known: "Mapping[str, Prepared]") -> None:
        """Train a group; if that fails, each of its runs alone, so that only culprits fail."""
        if not group.apart:
            try:
                self._train_together(group, known)
            except (StoreError, LostRankError, OSError):
                raise  # this is no run's fault, and the next call goes on
            except Exception as error:
                self._watch.ended(group.keys, failed=True)
                if len(group.keys) == 1:
                    self.failed[group.keys[0]] = reason_for(error)
                else:
                    self._watch.said(f"{len(group.keys)} runs failed together; trying each alone")
                    group = group.take_apart()
        if group.apart:
            for key, spec in zip(group.keys, group.specs, strict=True):
                if not self._is_done(key):
                    alone = replace(group, keys=(key,), specs=(spec,), apart=False)
                    self._train(alone, known)
        with self._store.writing():
            group.remove()

    def _train_together(self, group: Group, known: "Mapping[str, Prepared]") -> None:
        from bezoar.training import CheckpointError

        runs = self._prepared(group, known)
        if runs is None:
            return
        # Written again even where it was begun before, since files may lie elsewhere now.
        specs = tuple(run.spec.document() for run in runs)
        replace(group, specs=specs, base=Path.cwd()).write()
        began = datetime.now(UTC)
        start = None
        try:
            start = _checkpoint(group)
            histories = self._histories(group, runs, start)
        except CheckpointError as error:
            self._watch.said(f"{error}; its {len(group.keys)} runs start over")
            start = None
            histories = self._histories(group, runs, None)
        told = provenance(began, datetime.now(UTC))
        if start is not None:
            told["resumed_after"] = start.iteration
        for key, run, history in zip(group.keys, runs, histories, strict=True):
            if self._is_done(key):
                continue
            others = [other for other in group.keys if other != key]
            spec = run.spec
            finished = Finished(spec.document(), spec.texts(), versions(), run.network, history)
            notes = {"data_note": run.dataset.note, "network_note": run.network.note}
            told_of_run = told | {"trained_with": others, **history.details}
            told_of_run |= {name: note for name, note in notes.items() if note}
            self._store.save(key, finished, told_of_run, spec.keep_models)
            if not self._is_done(key):  # or it would be computed for ever
                raise StoreError(f"store: {self._store.path} does not give back what was written")
        self._watch.ended(group.keys, failed=False)

    def _prepared(self, group: Group, known: "Mapping[str, Prepared]") -> "list[Prepared] | None":
        """The runs of a group, some of which only an earlier sweep asked for.

        Returns:
            ``None`` if they are not what they were when the group was begun.
        """
        from bezoar.experiments._prepare import prepare

        try:
            runs = [
                known[key] if key in known else prepare(RunSpec.read(spec, group.base))
                for key, spec in zip(group.keys, group.specs, strict=True)
            ]
        except Exception as error:  # as when files were moved
            problem = f"{len(group.keys)} runs that were begun cannot go on: {reason_for(error)}"
            self._watch.said(f"{problem}; those that are asked for start over")
            return None
        if tuple(run.key for run in runs) != group.keys:
            self._watch.said("files that a group of runs is made from have changed; it starts over")
            return None
        return runs

    def _histories(
        self, group: Group, runs: "Sequence[Prepared]", start: "Checkpoint | None"
    ) -> "list[History]":
        specs = [run.spec for run in runs]
        self._watch.began(group.keys, specs, start.iteration if start else 0)
        progress = partial(self._watch.advanced, group.keys)
        keep = _keeper(group, specs[0].iterations, self._seconds)
        needed = runs[0].needs
        trained = None if needed is None else needed.average_model(self._store.load(needed.key))
        return self._execute(runs, progress, start, keep, trained)


def _checkpoint(group: Group) -> "Checkpoint | None":
    """Where a group's training stood when it was last written, if it was."""
    from bezoar.training import Checkpoint, CheckpointError

    try:
        return Checkpoint.load(group.checkpoint_file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(
            f"checkpoint: {group.checkpoint_file} cannot be read: {error.strerror}"
        ) from None


def _keeper(group: Group, iterations: int, seconds: float) -> "Callable[[Checkpoint], None]":
    """What writes a checkpoint now and then, and when training is done."""
    last, pause = time.monotonic(), seconds

    def keep(checkpoint: "Checkpoint") -> None:
        nonlocal last, pause
        before = time.monotonic()
        # The last one is for the moments in which some runs are saved and others are not yet.
        if checkpoint.iteration == iterations or before - last >= pause:
            with group.store.writing():
                checkpoint.save(group.checkpoint_file)
            last = time.monotonic()
            pause = max(seconds, WORTH * (last - before))

    return keep
