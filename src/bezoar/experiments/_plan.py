"""Plans of sweeps: which runs are finished, trained together, or impossible."""

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezoar._errors import BezoarError
from bezoar.experiments._spec import RunSpec
from bezoar.store import Store

if TYPE_CHECKING:
    from bezoar.experiments._prepare import Prepared

#: How much longer a step takes than its matrix products, at the speed of large ones.
OVERHEAD = 1.3

#: The most runs that are stepped together: more would not be faster, and a failure would cost more.
MOST_RUNS = 128


@dataclass(frozen=True)
class Failure:
    """A run that was refused or failed, and the reason."""

    spec: RunSpec
    reason: str


@dataclass(frozen=True)
class Plan:
    """What a sweep has to do.

    Attributes:
        keys: for each spec, in their order, the key of its run; ``None`` if it cannot be run.
        groups: the runs that are left to train, by key; those in a group are stepped together.
            Runs that others start from come first.
        finished: keys of runs that are in the store.
        broken: keys of runs to train again, because the store's copy is damaged.
        refused: the specs that cannot be run, in their order, with the reasons.
    """

    keys: Sequence[str | None]
    groups: "Sequence[Mapping[str, Prepared]]"
    finished: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    refused: Sequence[Failure] = field(default_factory=tuple)

    @property
    def new(self) -> int:
        """How many runs are left to train."""
        return sum(map(len, self.groups))

    @property
    def operations(self) -> float:
        """The floating-point operations of all runs that are left to train."""
        return sum(run.operations for group in self.groups for run in group.values())

    def seconds(self, workers: int | None = None) -> float:
        """About how long it will take, from a short measurement of this machine's speed.

        Matrix products alone are counted, so trainings of small networks or few samples, which
        spend their time elsewhere, take longer.
        """
        from bezoar.training import product_speed

        if not self.groups:
            return 0.0
        return OVERHEAD * self.operations / product_speed(workers, products=8, rounds=3)


def make_plan(
    specs: Iterable[RunSpec], store: Store, progress: Callable[[int], Any] | None = None
) -> Plan:
    """Plan a sweep; nothing is written.

    Groups are made of all specs that can be run, then the finished ones are taken out: what is
    already there does not move the others between groups. Two spellings of a run count once. The
    ``progress`` is told how many specs were looked at.
    """
    from bezoar.experiments._prepare import prepare

    wanted = list(specs)
    keys: list[str | None] = [None] * len(wanted)
    reasons: list[str | None] = [None] * len(wanted)
    runs: dict[str, Prepared] = {}
    for place, spec in enumerate(wanted):
        try:
            run = prepare(spec)
            _ = run.key, run.cost  # may find a part without a name, a model that data does not fit
            if run.needs is not None:
                runs.setdefault(run.needs.key, run.needs)
            keys[place] = run.key
            runs.setdefault(run.key, run)
        except Exception as error:  # whatever is wrong with one spec must not stop the others
            reasons[place] = reason_for(error)
        if progress is not None:
            progress(place + 1)
    finished = frozenset(key for key in runs if store.is_finished(key))
    groups, names = [], list(runs)
    for places in together([runs[name] for name in names]):
        todo = {n: runs[n] for n in (names[place] for place in places) if n not in finished}
        if not todo:
            continue
        try:
            next(iter(todo.values())).partition()
            groups.append(todo)
        except Exception as error:
            for place in [place for place, key in enumerate(keys) if key in todo]:
                keys[place], reasons[place] = None, reason_for(error)
    broken = frozenset(key for key in runs if key not in finished and key in store)
    refused = [
        Failure(spec, reason) for spec, reason in zip(wanted, reasons, strict=True) if reason
    ]
    return Plan(keys, groups, finished, broken, refused)


def together(
    runs: "Sequence[Prepared]", memory: int | None = None, most: int = MOST_RUNS
) -> list[list[int]]:
    """Which runs are stepped together: those that share everything a pass over the data needs.

    Groups are trained one after the other, each with all workers: side by side they would only
    compete for the same cores. A group that takes more bytes of memory, by default more than half
    of the machine's, is split; one that has more than the ``most`` runs is split evenly.

    Returns:
        The runs of each group, by their places.
    """
    memory = memory or machine_memory() // 2
    counts = Counter(run.together for run in runs)
    groups: dict[Hashable, list[list[int]]] = {}
    taken: dict[Hashable, float] = {}
    for place, run in enumerate(runs):
        key, size = run.together, run.cost.bytes
        parts = -(-counts[key] // most)
        full = key in groups and len(groups[key][-1]) >= -(-counts[key] // parts)
        if key not in groups or full or taken[key] + size > memory:
            groups.setdefault(key, []).append([])
            taken[key] = 0
        groups[key][-1].append(place)
        taken[key] += size
    return [places for parts in groups.values() for places in parts]


def machine_memory() -> int:
    """The bytes of memory this machine has; 8 GB where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def reason_for(error: BaseException) -> str:
    """Why a run failed, in a line."""
    if isinstance(error, BezoarError):
        return str(error)
    text = " ".join(str(error).split()) or "no more is known"
    return f"{type(error).__name__}: {text}"
