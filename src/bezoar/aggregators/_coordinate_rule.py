"""What rules by coordinates have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._rule import Aggregator


class CoordinateAggregator(Aggregator, ABC):
    """A rule that makes every coordinate of its output of the same coordinate of the inputs.

    If it has the option ``keep_own`` and that is set, the neighbours' values alone are sorted, and
    the own value comes before them. NaN counts as plus infinity.

    Attributes:
        reads: what it depends on: ``"values"`` alone; or ``"gram"``, the inner products of the
            inputs, by which it may :meth:`choose` whose values are used.
        sorts: whether values come in ascending order; otherwise they come in the order of the
            slots, the own one first.
    """

    reads: ClassVar[str] = "values"
    sorts: ClassVar[bool] = True

    def keeps_own(self) -> bool:
        """Whether the own value is kept unsorted, before the others."""
        return bool(getattr(self, "keep_own", False))

    def outermost(self, largest_estimate: int) -> int | None:
        """How many values at either end need sorting; between them weights must be uniform.

        ``None`` when every rank may matter.
        """
        return None

    def values_used(self, inputs: int, estimate: int) -> int:
        """How many of the inputs are used."""
        return inputs

    def choose(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[..., m]`` whether an input is used: at every agent as many as are to be used."""
        return neighbourhood.mask.expand(neighbourhood.finite.shape)

    @abstractmethod
    def combine(
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: Tensor
    ) -> Tensor:
        """The output, from the values of the inputs that are used.

        On the CPU this is called once for each number of inputs and estimate, to record its
        operations, which are then compiled. So the output must depend on nothing but the arguments
        and the options: not on random numbers, nor on anything that changes between calls. What can
        be recorded are arithmetic, comparisons and logic by operators, ``to`` and such functions as
        ``torch.where``, ``minimum``, ``maximum``, ``clamp``, ``abs``, ``sign``, ``sqrt``,
        ``isfinite`` and ``zeros_like``. A rule with other operations is computed with tensors,
        which is slower.

        Args:
            values: tensors of one shape, one for each of these inputs, free of NaN. They may be
                overwritten.
            estimate: the estimated number of poisoned inputs.
            dtype: the type in which values are added up.
            iteration: which iteration it is, counted from 1; 0 outside training. A number in
                float64.

        Returns:
            A tensor like each of the values.
        """

    @abstractmethod
    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        """The lowest and the highest of the values that have a part in the output.

        Whatever lies between these two was listened to.
        """


class RankAggregator(CoordinateAggregator, ABC):
    """A rule that sorts each coordinate of the inputs and averages by rank.

    With ``keep_own`` the neighbours' values have ranks from 1, and the own value has rank 0.
    """

    @abstractmethod
    def rank_weights(self, size: int, estimate: Tensor) -> Tensor:
        """The weight of each rank.

        Args:
            size: the number of inputs.
            estimate: ``[...]`` the estimated number of poisoned inputs.

        Returns:
            ``[..., size]`` probability vectors; those of the sorted values are the same from either
            end.
        """

    def ranks(self, size: int, estimate: int) -> Sequence[float]:
        """The weight of each rank for one number of inputs and one estimate."""
        return _known_rank_weights(self, size, estimate)

    def combine(
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: Tensor
    ) -> Tensor:
        ranks = self.ranks(len(values), estimate)
        return weighted_sum([each for each in zip(values, ranks, strict=True) if each[1]], dtype)

    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        first = int(self.keeps_own())
        ranks = self.ranks(len(values), estimate)[first:]
        used = [value for value, weight in zip(values[first:], ranks, strict=True) if weight]
        if not used:  # but the own one
            nothing = torch.full_like(values[0], torch.inf)
            return nothing, -nothing
        within = torch.stack(used)
        return within.amin(0), within.amax(0)


@cache
def _known_rank_weights(rule: RankAggregator, size: int, estimate: int) -> Sequence[float]:
    return list(rule.rank_weights(size, torch.tensor(estimate)).tolist())


def weighted_sum(values: Sequence[tuple[Tensor, float]], dtype: torch.dtype) -> Tensor:
    """The sum of values, each with its weight, in ``dtype``.

    Where ``dtype`` is wider than the values' type, sums are exact, and means are rounded once.
    """
    [(first, weight), *others] = values
    total = first.to(dtype)
    if dtype != first.dtype and all(other == weight for _, other in others):
        for value, _ in others:
            total = total + value.to(dtype)
        return total / len(values)
    if weight != 1:
        total = total * weight
    for value, weight in others:
        total = total + value.to(dtype) * weight
    return total
