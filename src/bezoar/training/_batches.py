"""Which samples an agent takes for each stochastic gradient."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from bezoar._arrays import Ints
from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar._options import choose
from bezoar._seeds import Purpose, generator

#: In which order an agent goes through its samples.
Order = Literal["random", "consecutive"]


class Batches:
    """The batch of every agent for every local update.

    An agent goes through its samples again and again and cuts that sequence into batches. So all
    batches are of one size, even where an agent holds fewer samples, and every sample is taken
    once before any is taken again.

    Args:
        sizes: ``[W]`` how many samples each agent holds.
        batch: how many samples are in a batch.
        order: ``"random"`` shuffles the samples for every pass, by the run's seed, the agent and
            the number of the pass; ``"consecutive"`` takes them as they are held.
        members: ``[W]`` the numbers of the agents, from which random orders follow; by default
            their places.
    """

    def __init__(
        self,
        sizes: Ints,
        batch: int,
        order: Order = "random",
        members: Sequence[int] | None = None,
    ) -> None:
        self.batch, self.order = whole("batch", batch, 1), order
        self._sizes = sizes.tolist()
        self._members = range(len(self._sizes)) if members is None else members
        choose("order", order, dict.fromkeys(get_args(Order)))
        # The last pass of each agent: its number and order. Every pass can be drawn again.
        self._last: dict[tuple[int, int], tuple[int, Ints]] = {}

    def places(self, seed: int, agent: int, update: int) -> Ints:
        """``[batch]`` which of its samples an agent takes for a local update, counted from 1."""
        size, start = self._sizes[agent], (update - 1) * self.batch
        if self.order == "consecutive":
            consecutive: Ints = np.arange(start, start + self.batch) % size
            return consecutive
        passes = range(start // size, -(-(start + self.batch) // size))
        orders = [self._shuffled(seed, agent, number) for number in passes]
        first = start - passes.start * size
        return np.concatenate(orders)[first : first + self.batch]

    def _shuffled(self, seed: int, agent: int, number: int) -> Ints:
        known = self._last.get((seed, agent))
        if known is not None and known[0] == number:
            return known[1]
        rng = generator(seed, Purpose.BATCHES, self._members[agent], number)
        order = rng.permutation(self._sizes[agent])
        self._last[seed, agent] = number, order
        return order


def check_batches(
    batch: int, accumulate: int, augment: bool, sample_shape: tuple[int, ...]
) -> None:
    """Refuse batches that cannot be augmented, or cut into as many equal parts, as is asked for."""
    if augment and len(sample_shape) != 3:
        raise BezoarError(
            f"augment: needs images [channels, height, width], found samples of shape "
            f"{list(sample_shape)}"
        )
    if batch % accumulate:
        raise BezoarError(
            f"accumulate: a batch of {batch} cannot be cut into {accumulate} equal parts; "
            "allowed: numbers that divide it"
        )
