"""The parts that specs lead to, kept for specs that share them. Needs no torch."""

from collections.abc import Hashable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from bezoar import _parts
from bezoar._errors import BezoarError
from bezoar._files import file_version
from bezoar._seeds import Purpose, generator
from bezoar.data import Dataset, Partition
from bezoar.experiments._choice import Choice
from bezoar.experiments._identity import identity
from bezoar.experiments._spec import RunSpec, spec_of
from bezoar.networks import Network, place, poison
from bezoar.store import StoredRun


def part(choice: Choice) -> Any:
    """The rule, attack, schedule or optimiser that was chosen."""
    return _part(choice, _maker(choice))


def network_of(spec: RunSpec) -> Network:
    """The network of a spec, with its poisoned agents."""
    return poisoned_network(spec.network, spec.poisoned, spec.placement, spec.seed)


def poisoned_network(
    choice: Choice,
    poisoned: int | tuple[int | str, ...] | None,
    placement: str | None = None,
    seed: int = 0,
) -> Network:
    """A network whose poisoned agents are chosen by number, name or placement.

    Args:
        choice, seed: the network, and what random placements follow from.
        poisoned: how many agents; the names of those that are; or ``None``: as the network says.
        placement: where a number of agents sit; see :func:`bezoar.networks.place`. By default
            where the network says; where it does not, the last agents.
    """
    if placement is not None and isinstance(poisoned, tuple) and poisoned:
        raise BezoarError(
            f"placement: {placement!r} says where a number of poisoned agents sit, but poisoned "
            f"names them: {', '.join(map(str, poisoned))}; give one or the other"
        )
    drawn = seed if placement == "random" else 0
    return _network(choice, _maker(choice), _file_versions(choice), poisoned, placement, drawn)


def network_of_run(run: StoredRun) -> Network:
    """The network that a finished run was trained on."""
    return run.network or network_of(spec_of(run))


def dataset_of(spec: RunSpec) -> Dataset:
    """The data of a spec: all of it, or the training samples that its seed draws."""
    dataset = _dataset(spec.dataset, _maker(spec.dataset), _file_versions(spec.dataset))
    return dataset if spec.samples is None else _drawn(dataset, spec.samples, spec.seed)


def partition_of(spec: RunSpec, agents: int, dataset: Dataset | None = None) -> Partition:
    """Which agent holds which samples in a run of a spec.

    If its data is at hand it is given: the file it was read from may have changed since.
    """
    choice = spec.partition
    return _partition(dataset or dataset_of(spec), choice, _maker(choice), agents, spec.seed)


def run_key(spec: RunSpec) -> str:
    """The name of a spec's run in a store; see :func:`bezoar.experiments._identity.identity`."""
    return identity(spec, network_of(spec), dataset_of(spec))


# What parts are made from may change while a process lives. So caches go by the maker of a part
# and the versions of the files it reads, too.


def _maker(choice: Choice) -> Any:
    return None if choice.part is not None else _parts.maker(choice.kind, choice.name)


def _file_versions(choice: Choice) -> Hashable:
    versions: list[Hashable] = []
    for option in choice.paths():
        with suppress(OSError, TypeError):  # reading it will say what is wrong
            versions.append(file_version(Path(choice.options[option])))
    return (*versions, *((_maker(each), _file_versions(each)) for each in choice.inner()))


@lru_cache(maxsize=1024)
def _part(choice: Choice, maker: Any) -> Any:
    return choice.make()


@lru_cache(maxsize=128)
def _network(
    choice: Choice,
    maker: Any,
    versions: Hashable,
    poisoned: int | tuple[int | str, ...] | None,
    placement: str | None,
    seed: int,
) -> Network:
    if isinstance(poisoned, int) and "poisoned" in choice.options:
        made: Network = choice.make(poisoned=poisoned)  # the number may shape the network
    else:
        made = choice.make()
        if poisoned is not None:
            made = poison(made, poisoned)
    if placement is not None and poisoned is None and not made.poisoned:
        raise BezoarError(
            f"placement: {placement!r} says where poisoned agents sit, but nobody is poisoned; say "
            "how many with poisoned, such as 2"
        )
    if placement is None or not made.poisoned:
        return made
    return place(made, len(made.poisoned), placement, seed)


@lru_cache(maxsize=8)
def _dataset(choice: Choice, maker: Any, versions: Hashable) -> Dataset:
    made: Dataset = choice.make()
    return made


@lru_cache(maxsize=64)
def _drawn(dataset: Dataset, samples: int, seed: int) -> Dataset:
    return dataset.drawn(samples, generator(seed, Purpose.SAMPLES))


@lru_cache(maxsize=32)
def _partition(dataset: Dataset, choice: Choice, maker: Any, agents: int, seed: int) -> Partition:
    rng = generator(seed, Purpose.PARTITION)
    made: Partition = choice.make()(dataset.train_labels, dataset.classes, agents, rng)
    return made
