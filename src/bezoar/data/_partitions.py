"""Who holds which samples: partitions of a training set over all agents, poisoned ones too."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from bezoar._arrays import Ints
from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne, Part, Positive

#: How often a Dirichlet partition is drawn again when an agent got no samples.
DRAWS = 100


@dataclass(frozen=True, eq=False)
class Partition:
    """The samples of every agent.

    Attributes:
        order: ``[n]`` sample numbers, agent after agent.
        offsets: ``[W + 1]`` agent ``w`` holds ``order[offsets[w] : offsets[w + 1]]``.
    """

    order: Ints
    offsets: Ints

    @classmethod
    def from_owners(cls, owners: Ints, agents: int) -> "Partition":
        """The partition in which sample ``i`` belongs to agent ``owners[i]``."""
        sizes = np.bincount(owners, minlength=agents)
        order = np.argsort(owners, kind="stable").astype(np.int64)
        return cls(order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    @property
    def agents(self) -> int:
        """The number of agents."""
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Ints:
        """``[W]`` how many samples each agent holds."""
        return np.diff(self.offsets)

    def samples(self, agent: int) -> Ints:
        """The samples of one agent."""
        return self.order[self.offsets[agent] : self.offsets[agent + 1]]

    def only(self, agents: Sequence[int]) -> "Partition":
        """The samples of some agents alone, in the order given."""
        held = [self.samples(agent) for agent in agents]
        ends = np.cumsum([0, *map(len, held)])
        return Partition(np.concatenate(held), ends.astype(np.int64))

    def holdings(self, labels: Ints, classes: int) -> Ints:
        """``[W, classes]`` how many samples of each class each agent holds."""
        owner = np.repeat(np.arange(self.agents), self.sizes)
        cells = owner * classes + labels[self.order]
        return np.bincount(cells, minlength=self.agents * classes).reshape(self.agents, classes)


class Partitioner(Part, ABC):
    """A way to divide samples among agents; a frozen dataclass whose fields are its options."""

    def __call__(
        self, labels: Ints, classes: int, agents: int, rng: np.random.Generator
    ) -> Partition:
        """Give every sample to one agent, so that every agent has some."""
        if agents > len(labels):
            raise BezoarError(
                f"partition {self.name}: {len(labels)} samples are too few for {agents} agents"
            )
        owners = np.asarray(self.owners(labels, classes, agents, rng))
        if owners.shape != (len(labels),) or not np.issubdtype(owners.dtype, np.integer):
            raise BezoarError(
                f"partition {self.name}: owners: expected {len(labels)} integers, found "
                f"{owners.dtype} of shape {list(owners.shape)}"
            )
        if owners.min() < 0 or owners.max() >= agents:
            raise BezoarError(
                f"partition {self.name}: owners: expected 0 … {agents - 1}, found "
                f"{owners.min()} … {owners.max()}"
            )
        made = Partition.from_owners(owners.astype(np.int64, copy=False), agents)
        if not made.sizes.all():
            empty = int(made.sizes.argmin())
            raise BezoarError(
                f"partition {self.name}: agent {empty} gets no samples; use fewer agents"
            )
        return made

    @abstractmethod
    def owners(self, labels: Ints, classes: int, agents: int, rng: np.random.Generator) -> Ints:
        """``[n]`` the number of the agent who gets each sample."""


@dataclass(frozen=True)
class IID(Partitioner):
    """An even random split."""

    name: ClassVar[str] = "iid"

    def owners(self, labels: Ints, classes: int, agents: int, rng: np.random.Generator) -> Ints:
        return rng.permutation(np.arange(len(labels)) * agents // len(labels))


@dataclass(frozen=True)
class Dirichlet(Partitioner):
    """Each class is divided in proportions drawn from a symmetric Dirichlet distribution.

    Args:
        alpha: the concentration: large is nearly i.i.d., small leaves few classes to an agent.
    """

    # Sums of larger numbers overflow.
    alpha: Annotated[Positive, Field(le=1e300, allow_inf_nan=False)] = 1.0

    name: ClassVar[str] = "dirichlet"

    def owners(self, labels: Ints, classes: int, agents: int, rng: np.random.Generator) -> Ints:
        by_class = np.argsort(labels, kind="stable")
        counts = np.bincount(labels, minlength=classes)
        for _ in range(DRAWS):
            shares = rng.dirichlet(np.full(agents, float(self.alpha)), size=classes)
            bounds = np.rint(np.cumsum(shares, axis=1) * counts[:, None]).astype(np.int64)
            bounds[:, -1] = counts
            sizes = np.diff(bounds, axis=1, prepend=0)
            if np.all(sizes.sum(axis=0) > 0):
                owners = np.empty(len(labels), dtype=np.int64)
                assigned = np.repeat(np.tile(np.arange(agents), classes), sizes.ravel())
                starts = np.concatenate([[0], np.cumsum(counts)])
                for start, stop in pairwise(starts):
                    owners[rng.permutation(by_class[start:stop])] = assigned[start:stop]
                return owners
        raise BezoarError(
            f"partition dirichlet: in {DRAWS} draws with alpha {self.alpha} some of {agents} "
            "agents always got no samples; raise alpha or use fewer agents"
        )


@dataclass(frozen=True)
class Drawn(Partitioner):
    """Every agent draws its own samples; others may draw the same. So there may be many agents.

    Args:
        samples: how many each draws.
    """

    samples: AtLeastOne = 8

    name: ClassVar[str] = "drawn"

    def __call__(
        self, labels: Ints, classes: int, agents: int, rng: np.random.Generator
    ) -> Partition:
        """Let every agent draw."""
        order = rng.integers(0, len(labels), size=agents * self.samples)
        return Partition(order, np.arange(agents + 1) * self.samples)

    def owners(self, labels: Ints, classes: int, agents: int, rng: np.random.Generator) -> Ints:
        raise BezoarError("partition drawn: a sample may belong to several agents")


@dataclass(frozen=True)
class ByClass(Partitioner):
    """Agent ``i`` gets the classes congruent to ``i`` modulo the number of agents.

    With fewer classes than agents, a class is split evenly and at random among its agents, those
    congruent to it modulo the number of classes.
    """

    name: ClassVar[str] = "by_class"

    def owners(self, labels: Ints, classes: int, agents: int, rng: np.random.Generator) -> Ints:
        owners = labels % agents
        if classes < agents:
            counts = np.bincount(labels, minlength=classes)
            holders = (agents - 1 - np.arange(classes)) // classes + 1
            shuffled = rng.permutation(len(labels))
            by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
            kind = labels[by_class]
            starts = np.cumsum(counts) - counts
            rank = np.arange(len(labels)) - starts[kind]
            owners = np.empty(len(labels), dtype=np.int64)
            owners[by_class] = kind + classes * (rank * holders[kind] // counts[kind])
        return owners
