"""Sweeps: many runs into a store, whatever happens in between."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import Timeout

from bezoar._checks import non_negative, whole
from bezoar._errors import LostRankError
from bezoar.experiments._elsewhere import WORTH, Elsewhere, ExecutorError
from bezoar.experiments._grid import as_specs
from bezoar.experiments._identity import versions
from bezoar.experiments._plan import Failure, Plan, make_plan, reason_for
from bezoar.experiments._provenance import provenance
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._watch import Trainer, Watch
from bezoar.store import Finished, Group, Store, StoredRun, StoreError

if TYPE_CHECKING:
    from bezoar.experiments._prepare import Prepared
    from bezoar.training import Checkpoint, History

#: Seconds between two looks at what this sweep waits for: other sweeps, and silent workers.
PATIENCE = 0.5

#: What the work on a group waits for: it goes on when one of these is done, or after a while.
Waiting = Sequence["Future[Any]"]

#: The work on a group; it ends with ``False`` if somebody else is working on it.
GroupWork = Generator[Waiting, None, bool]


@dataclass(frozen=True)
class Swept:
    """The outcome of a sweep.

    Attributes:
        runs: for every spec, in their order, its finished run or why there is none.
        plan: what there was to train.
    """

    runs: list[StoredRun | Failure]
    plan: Plan

    @property
    def failures(self) -> list[Failure]:
        """The runs that were refused or failed."""
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
    workers: int | None = None,
    at_once: int | Callable[[], int] | None = None,
    trainer: Trainer | None = None,
) -> Swept:
    """Compute the runs that are not in the store yet, and return all of them.

    It may be killed at any moment and called again: finished runs stay, and what was under way
    goes on from its last checkpoint, with the bits it would have had. Several sweeps, in one or
    more processes, may share a store: a group of runs is trained by one of them.

    Args:
        specs: what to run: specs, the fields of a sweep as for :func:`expand`, or the path of a
            TOML file. A run that is refused or fails does not stop the others.
        store: where runs are kept.
        executor: who trains, in slices: any executor of processes, on this machine or on others.
            Its workers need bezoar and the files that the specs name, nothing else. By default
            this process trains, a group after the other.
        watch: is told how it goes.
        checkpoint_seconds: training that may be lost when the process or a worker dies; the length
            of slices. Writing checkpoints never takes more than a twentieth of the time of
            training.
        workers: how many threads, if this process trains; by default one a core. Results do not
            depend on it.
        at_once: how many groups an executor trains at the same time, or a function that tells; by
            default as many as it has workers, where it tells. If it tells 0, no worker is there;
            the sweep says so and waits for one.
        trainer: who trains together with this process, if others do, as ranks.

    Raises:
        ExecutorError: where the executor takes no more work, or a worker has other files or
            versions than this process. What was finished is kept; the next call goes on.
        StoreError: where the store cannot be written, as when the disk is full. What was finished
            is kept; the next call goes on.
    """
    wanted = as_specs(specs)
    store = store if isinstance(store, Store) else Store(store)
    watch = watch or Watch()
    non_negative("checkpoint_seconds", checkpoint_seconds)
    if workers is not None:
        whole("workers", workers, 1)
    plan = make_plan(wanted, store, lambda done: watch.planning(done, len(wanted)))
    watch.planned(plan)
    failed: dict[str, str] = {}
    if plan.groups:
        elsewhere = None
        if executor is not None:
            elsewhere = Elsewhere(executor, at_once, checkpoint_seconds, watch)
        work = _Work(store, watch, checkpoint_seconds, workers, elsewhere, trainer)
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


@dataclass
class _Work:
    """The work of a sweep, group by group.

    A group is trained by whoever holds its lock. Sweeps of the same specs train the same groups,
    whoever gets which, so their store has the same bits as that of one sweep alone.

    Attributes:
        failed: why runs failed, by key.
    """

    _store: Store
    _watch: Watch
    _seconds: float
    _workers: int | None
    _elsewhere: Elsewhere | None
    _trainer: Trainer | None
    failed: dict[str, str] = field(default_factory=dict)
    _finished: set[str] = field(default_factory=set)

    def do(self, plan: Plan) -> None:
        """Train every run of the plan, until it is in the store or has failed.

        The work on a group is a generator. It waits for workers by yielding, so that one thread
        looks after all groups under way.
        """
        for key in sorted(plan.broken):
            if aside := self._store.repair(key):
                self._watch.said(f"run {key} was damaged: set aside in {aside}, computed again")
        waiting, told = deque(plan.groups), False
        blocked: deque[Mapping[str, Prepared]] = deque()
        under_way: dict[GroupWork, tuple[Mapping[str, Prepared], Waiting]] = {}

        def go_on(work: GroupWork, runs: "Mapping[str, Prepared]") -> None:
            try:
                under_way[work] = runs, next(work)
            except StopIteration as end:
                under_way.pop(work, None)
                if not end.value:
                    blocked.append(runs)

        try:
            while waiting or under_way or blocked:
                while waiting and len(under_way) < self._at_once():
                    runs = waiting.popleft()
                    go_on(self._finish(runs), runs)
                if under_way:
                    futures = [each for _, awaited in under_way.values() for each in awaited]
                    wait(futures, PATIENCE, FIRST_COMPLETED)
                    for work, (runs, _) in list(under_way.items()):
                        go_on(work, runs)
                elif blocked and not waiting:
                    if not told:
                        left = sum(not self._is_done(key) for runs in blocked for key in runs)
                        what = "a run" if left == 1 else f"{left} runs"
                        self._watch.said(f"waiting for {what} that another sweep is computing")
                        told = True
                    time.sleep(PATIENCE)
                if not waiting:
                    waiting.extend(blocked)
                    blocked.clear()
        finally:
            for work in under_way:
                work.close()

    def _at_once(self) -> int:
        return 1 if self._elsewhere is None else self._elsewhere.at_once()

    def _finish(self, runs: "Mapping[str, Prepared]") -> GroupWork:
        """Train what is left of a planned group; ``False`` if somebody else is working on it."""
        for key, run in runs.items():
            if not self._is_done(key) and not (yield from self._finish_needed(key, run)):
                return False
        while group := self._next(runs):
            try:
                with self._locked(group):
                    # What was seen before may be past: others may have finished or begun.
                    if group == self._next(runs):
                        yield from self._train(group, runs)
            except Timeout:
                return False
        return True

    def _finish_needed(self, key: str, run: "Prepared") -> GroupWork:
        """Train the run that a run starts from; ``False`` if somebody else is working on it."""
        needed = run.needs
        if needed is None:
            return True
        if not (yield from self._finish({needed.key: needed})):
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

    def _train(
        self, group: Group, known: "Mapping[str, Prepared]"
    ) -> Generator[Waiting, None, None]:
        """Train a group; if that fails, each of its runs alone, so that only culprits fail."""
        if not group.apart:
            try:
                yield from self._train_together(group, known)
            except (StoreError, ExecutorError, LostRankError, OSError):
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
                    yield from self._train(alone, known)
        with self._store.writing():
            group.remove()

    def _train_together(
        self, group: Group, known: "Mapping[str, Prepared]"
    ) -> Generator[Waiting, None, None]:
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
            histories = yield from self._histories(group, runs, start)
        except CheckpointError as error:
            self._watch.said(f"{error}; its {len(group.keys)} runs start over")
            start = None
            histories = yield from self._histories(group, runs, None)
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
            told_of_run = told | {"device": spec.device, "trained_with": others, **history.details}
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
    ) -> "Generator[Waiting, None, list[History]]":
        from bezoar.experiments._prepare import train
        from bezoar.training import Workers

        specs = [run.spec for run in runs]
        self._watch.began(group.keys, specs, start.iteration if start else 0)
        progress = partial(self._watch.advanced, group.keys)
        keep = _keeper(group, specs[0].iterations, self._seconds)
        needed = runs[0].needs
        trained = None if needed is None else needed.average_model(self._store.load(needed.key))
        if self._trainer is not None:
            return self._trainer(runs, progress, start, keep, trained)
        if self._elsewhere is None:
            with Workers(self._workers) as workers:
                return train(runs, workers, progress, start, keep, trained)

        def worked(worker: str, iterations: int, seconds: float) -> None:
            self._watch.worked(worker, group.keys, iterations, seconds)

        return (yield from self._elsewhere.train(runs, progress, worked, start, keep, trained))


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
    """A function that writes a checkpoint now and then, and when training is done."""
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
