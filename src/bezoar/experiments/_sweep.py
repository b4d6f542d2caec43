"""Sweeps: many runs into a store, whatever happens in between."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter

from torch import Tensor

from bezoar.experiments._groups import Group, begun_groups
from bezoar.experiments._identity import run_key
from bezoar.experiments._provenance import provenance
from bezoar.experiments._running import train_group
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._store import Claim, Store, StoredRun, StoreError
from bezoar.experiments._sweep_plan import (
    Failure,
    SweepPlan,
    is_finished,
    plan_sweep,
    reason_for,
)
from bezoar.training import Checkpoint, CheckpointError, History, Workers

#: Seconds between two looks at whether another sweep has finished what this one waits for.
PATIENCE = 0.5

#: Training between two checkpoints takes at least this many times as long as writing one.
WORTH = 20


class Watch:
    """Is told how a sweep goes; this one does nothing about it."""

    def planned(self, plan: SweepPlan) -> None:
        """The plan is made; the work begins."""

    def began(self, group: Group, iteration: int) -> None:
        """A group's training begins, or goes on after so many iterations."""

    def advanced(self, group: Group, iteration: int, metrics: Mapping[str, Tensor]) -> None:
        """A group has done so many iterations; the latest metrics are ``[runs]`` each."""

    def ended(self, group: Group, failed: bool) -> None:
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
    plan: SweepPlan

    @property
    def failures(self) -> list[Failure]:
        """The runs that could not be."""
        return [run for run in self.runs if isinstance(run, Failure)]

    @property
    def finished(self) -> list[StoredRun]:
        """The runs that are in the store."""
        return [run for run in self.runs if isinstance(run, StoredRun)]


def sweep(
    specs: Iterable[RunSpec],
    store: Store,
    workers: int | None = None,
    watch: Watch | None = None,
    checkpoint_seconds: float = 30.0,
) -> Swept:
    """Have all runs in the store, computing those that are not there.

    It may be killed at any moment and called again: finished runs stay, and what was under way
    goes on from its last checkpoint, with the bits it would have had. Several sweeps, in one or
    more processes, may share a store: none computes what another is computing or has computed.

    Args:
        specs: what to run. One that cannot be run, or fails, does not stop the others.
        store: where runs are kept.
        workers: how many threads; by default one a core. Results do not depend on it.
        watch: is told how it goes.
        checkpoint_seconds: training that may be lost when the process dies. Writing a checkpoint
            takes as long as writing the models to the disk, some 30 ms for 27 runs of ten agents
            on MNIST; it never takes more than a twentieth of the time of training.

    Raises:
        StoreError: where the store cannot be written, as when the disk is full. What was finished
            is kept; the next call goes on.
    """
    wanted = list(specs)
    watch = watch or Watch()
    plan = plan_sweep(wanted, store)
    watch.planned(plan)
    failures = {failure.spec: failure for failure in plan.refused}
    if plan.groups:
        with Workers(workers) as pool:
            work = _Work(store, pool, watch, checkpoint_seconds)
            work.do(plan)
        failures |= {
            spec: Failure(spec, work.failed[key])
            for spec, key in plan.keys.items()
            if key in work.failed
        }
    _clear_up(store)
    runs = [failures[spec] if spec in failures else store.load(plan.keys[spec]) for spec in wanted]
    return Swept(runs, plan)


class _Work:
    """The work of a sweep, group by group.

    A group is claimed as a whole or not at all. So sweeps of the same specs train the same groups,
    whoever gets which, and their store has the same bits as that of one sweep alone.

    Attributes:
        failed: why runs failed, by key.
    """

    def __init__(self, store: Store, workers: Workers, watch: Watch, seconds: float) -> None:
        self.failed: dict[str, str] = {}
        self._finished: set[str] = set()
        self._store = store
        self._workers = workers
        self._watch = watch
        self._seconds = seconds

    def do(self, plan: SweepPlan) -> None:
        """Settle every run: it is in the store, or has failed."""
        for key in sorted(plan.broken):
            if aside := self._store.repair(key):
                self._watch.said(f"run {key} was damaged: set aside in {aside}, computed again")
        pending = [runs for runs in plan.groups if not self._settle(runs)]
        if pending:
            count = sum(not self._is_settled(key) for runs in pending for key in runs)
            what = "a run" if count == 1 else f"{count} runs"
            self._watch.said(f"waiting for {what} that another sweep is computing")
        while pending:
            time.sleep(PATIENCE)
            pending = [runs for runs in pending if not self._settle(runs)]

    def _settle(self, runs: Mapping[str, RunSpec]) -> bool:
        """Settle runs that were planned together.

        Returns:
            Whether they are settled; ``False`` if somebody else is working on some of them.
        """
        while group := self._next(runs):
            with self._claimed(group) as claimed:
                if not claimed:
                    return False
                # What was seen before the claims may be past: others may have finished or begun.
                if group == self._next(runs):
                    self._train(group)
        return True

    def _next(self, runs: Mapping[str, RunSpec]) -> Group | None:
        """What to train of some runs: a group that was begun with one of them, or all the rest."""
        todo = {key: spec for key, spec in runs.items() if not self._is_settled(key)}
        if not todo:
            return None
        for group in begun_groups(self._store):
            if not todo.keys().isdisjoint(group.keys):
                return group
        return Group.of(self._store, list(todo.items()))

    def _is_settled(self, key: str) -> bool:
        if key not in self._finished and is_finished(self._store, key):
            self._finished.add(key)
        return key in self._finished or key in self.failed

    @contextmanager
    def _claimed(self, group: Group) -> Iterator[bool]:
        """Claim all runs of a group that are not settled, or none; yields which."""
        with ExitStack() as held:
            claims: list[Claim | None] = []
            # All sweeps claim in the same order, so that of two with common runs one gets on.
            for key, spec in sorted(zip(group.keys, group.specs, strict=True), key=itemgetter(0)):
                if self._is_settled(key):
                    continue
                claims.append(self._store.claim(spec))
                if claims[-1] is None:
                    held.close()
                    break
                held.enter_context(claims[-1])
            yield None not in claims

    def _train(self, group: Group) -> None:
        """Train a group; if that fails, each of its runs alone, so that only culprits fail."""
        if not group.apart:
            try:
                self._train_together(group)
            except (StoreError, OSError):
                raise  # this is no run's fault, and the next call goes on
            except Exception as error:
                self._watch.ended(group, failed=True)
                if len(group.keys) == 1:
                    self.failed[group.keys[0]] = reason_for(error)
                else:
                    self._watch.said(f"{len(group.keys)} runs failed together; trying each alone")
                    group = group.take_apart()
        if group.apart:
            for run in zip(group.keys, group.specs, strict=True):
                if not self._is_settled(run[0]):
                    self._train(Group.of(self._store, [run]))
        with self._store.writing():
            group.remove()

    def _train_together(self, group: Group) -> None:
        group.write()
        began = datetime.now(UTC)
        start = None
        try:
            start = group.checkpoint()
            histories = self._histories(group, start)
        except CheckpointError as error:
            self._watch.said(f"{error}; its {len(group.keys)} runs start over")
            start = None
            histories = self._histories(group, None)
        told = provenance(began, datetime.now(UTC))
        if start is not None:
            told["resumed_after"] = start.iteration
        for key, spec, history in zip(group.keys, group.specs, histories, strict=True):
            if self._is_settled(key):
                continue
            if run_key(spec) != key:
                self.failed[key] = "network: its file was changed while the run was trained"
                continue
            others = [other for other in group.keys if other != key]
            self._store.save(spec, history, told | {"trained_with": others})
            if not self._is_settled(key):  # or it would be computed for ever
                raise StoreError(f"store: {self._store.path} does not give back what was written")
        self._watch.ended(group, failed=False)

    def _histories(self, group: Group, start: Checkpoint | None) -> list[History]:
        self._watch.began(group, start.iteration if start else 0)
        return train_group(
            group.specs,
            self._workers,
            partial(self._watch.advanced, group),
            start,
            _Keeper(group, self._seconds).see,
        )


class _Keeper:
    """Writes a checkpoint now and then, and when training is done."""

    def __init__(self, group: Group, seconds: float) -> None:
        self._group = group
        self._pause = self._seconds = seconds
        self._last = time.monotonic()

    def see(self, checkpoint: Checkpoint) -> None:
        """Write it if it is time."""
        before = time.monotonic()
        # The last one is for the moments in which some runs are saved and others are not yet.
        done = checkpoint.iteration == self._group.specs[0].iterations
        if done or before - self._last >= self._pause:
            self._group.keep(checkpoint)
            self._last = time.monotonic()
            self._pause = max(self._seconds, WORTH * (self._last - before))


def _clear_up(store: Store) -> None:
    """Remove what sweeps left that died after the last of a group's runs was saved."""
    for group in begun_groups(store):
        if all(is_finished(store, key) for key in group.keys):
            with suppress(OSError):  # as in a store that can only be read
                group.remove()
