"""What a sweep has to do: which runs are there, which are to do together, which cannot be."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bezoar._errors import BezoarError
from bezoar.experiments._identity import run_key
from bezoar.experiments._running import (
    check,
    network_of,
    operations_of,
    partition_of,
    plan,
    run_bytes,
    shared_by,
)
from bezoar.experiments._spec import RunSpec
from bezoar.experiments._store import BrokenRunError, Store
from bezoar.training import product_speed

#: How much longer a step takes than its matrix products, at the speed of large ones.
OVERHEAD = 1.3


@dataclass(frozen=True)
class Failure:
    """A run that could not be.

    Attributes:
        spec: what it was to be.
        reason: why it could not.
    """

    spec: RunSpec
    reason: str


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep has to do.

    Attributes:
        keys: the key of every run that can have one.
        groups: the runs still to do, by key; those in a group are stepped together.
        finished: keys of runs that are in the store.
        broken: keys of runs to do again, because what the store has of them is damaged.
        refused: the runs that cannot be, with the reasons.
        operations: the floating-point operations of all that is to do.
    """

    keys: Mapping[RunSpec, str]
    groups: Sequence[Mapping[str, RunSpec]]
    finished: Collection[str]
    broken: Collection[str]
    refused: Sequence[Failure]
    operations: float

    @property
    def new(self) -> int:
        """How many runs are to do."""
        return sum(map(len, self.groups))

    def seconds(self, workers: int | None = None) -> float:
        """About how long it will take, from a short measurement of this machine's speed.

        Matrix products alone are counted, so trainings of small networks or few samples, which
        spend their time elsewhere, take longer.
        """
        if not self.operations:
            return 0.0
        return OVERHEAD * self.operations / product_speed(workers, products=8, rounds=3)


def plan_sweep(specs: Iterable[RunSpec], store: Store) -> SweepPlan:
    """Plan a sweep; nothing is written.

    Groups are made of all specs that can be run, then the finished ones are taken out: what is
    already there does not move the others between groups.

    Args:
        specs: what to run; duplicates count once.
        store: where finished runs are.
    """
    distinct = list(dict.fromkeys(specs))
    keys: dict[RunSpec, str] = {}
    reasons: dict[RunSpec | str, str] = {}
    for spec in distinct:
        try:
            keys[spec] = run_key(spec)
        except BezoarError as error:
            reasons[spec] = str(error)
    wanted = {key: spec for spec, key in keys.items()}
    finished = {key for key in wanted if is_finished(store, key)}
    for key, spec in wanted.items():
        if key not in finished and (reason := _why_not(check, spec)):
            reasons[key] = reason
    groups = []
    for group in _together({key: spec for key, spec in wanted.items() if key not in reasons}):
        todo = {key: spec for key, spec in group.items() if key not in finished}
        if not todo:
            continue
        if reason := _why_not(_deal_out, next(iter(todo.values()))):
            reasons |= dict.fromkeys(todo, reason)
        else:
            groups.append(todo)
    return SweepPlan(
        keys,
        groups,
        finished,
        {key for key in wanted if key not in finished and key in store},
        [
            Failure(spec, reason)
            for spec in distinct
            if (reason := reasons.get(spec) or reasons.get(keys.get(spec, "")))
        ],
        sum(operations_of(spec) for group in groups for spec in group.values()),
    )


def is_finished(store: Store, key: str) -> bool:
    """Whether a run is in the store, whole.

    Raises:
        UnknownFormatError: if a newer version wrote it.
    """
    try:
        if key not in store:
            return False
        store.load(key).verify()
    except BrokenRunError:
        return False
    return True


def reason_for(error: Exception) -> str:
    """Why a run failed, in a line."""
    if isinstance(error, BezoarError):
        return str(error)
    text = " ".join(str(error).split()) or "no more is known"
    return f"{type(error).__name__}: {text}"


def _why_not(attempt: Callable[[RunSpec], object], spec: RunSpec) -> str | None:
    """Why something cannot be done with a spec, if it cannot."""
    try:
        attempt(spec)
    except Exception as error:  # whatever is wrong with one spec must not stop the others
        return reason_for(error)
    return None


def _deal_out(spec: RunSpec) -> None:
    partition_of(spec, network_of(spec).agents)


def _together(runs: Mapping[str, RunSpec]) -> list[dict[str, RunSpec]]:
    """Runs by key in the groups in which they are stepped."""
    keys = list(runs)
    groups = plan([shared_by(runs[key]) for key in keys], [run_bytes(runs[key]) for key in keys])
    return [{keys[place]: runs[keys[place]] for place in places} for places in groups]
