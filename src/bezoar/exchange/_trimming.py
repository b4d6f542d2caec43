"""Trimmed sums of many overlapping sets of inputs, with shared parts computed once.

On a dense network the agents' neighbourhoods differ by few inputs. Of a set of inputs it is enough
to know, coordinate by coordinate, its ``q`` lowest values, its ``q`` highest values, and the sum
of the rest; two disjoint sets are merged by moving what is no longer outermost to the sum. Only
values that are kept are ever added up, so nothing cancels, however large the outermost ones are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import torch
from torch import Tensor

#: Looking for common parts takes longer the more agents there are, and pays where they are few.
MOST_AGENTS = 64


@dataclass(frozen=True)
class Plan:
    """In which order to merge.

    Attributes:
        merges: pairs of sets to be merged, in turn. Sets are numbered: the inputs first, then
            the results of the merges.
        results: the number of each wanted set.
    """

    merges: Sequence[tuple[int, int]]
    results: Sequence[int]


def plan(sets: Sequence[Iterable[int]], inputs: int) -> Plan:
    """How to build sets by merging, the most common pairs first.

    Args:
        sets: the inputs in each wanted set.
        inputs: the number of inputs.
    """
    left = [set(members) for members in sets]
    merges: list[tuple[int, int]] = []
    while True:
        pairs = Counter(pair for members in left for pair in combinations(sorted(members), 2))
        if not pairs:
            break
        common = max(pairs.values())
        # Small parts first: they are the cheapest to merge, and fit into more sets.
        pair = min((pair for pair, count in pairs.items() if count == common), key=max)
        merged = inputs + len(merges)
        merges.append(pair)
        for members in left:
            if members.issuperset(pair):
                members.difference_update(pair)
                members.add(merged)
    return Plan(merges, [min(members) for members in left])


@dataclass
class _Part:
    """What is known of a set of inputs: few values as they are, or their ends and the rest."""

    values: list[Tensor] = field(default_factory=list)
    low: list[Tensor] = field(default_factory=list)
    high: list[Tensor] = field(default_factory=list)
    rest: Tensor | None = None


def trimmed_sums(values: Sequence[Tensor], plan: Plan, dropped: int) -> list[Tensor]:
    """For each set of the plan the sum of its values without the outermost, coordinate-wise.

    Args:
        values: ``[n]`` each, the inputs; they are left alone.
        plan: from :func:`plan`; every set must have more than ``2 · dropped`` inputs.
        dropped: how many values to leave out at either end, at least one.
    """
    parts = [_Part([value]) for value in values]
    for first, second in plan.merges:
        parts.append(_merge(parts[first], parts[second], dropped))
    sums = [parts[number].rest for number in plan.results]
    return [each for each in sums if each is not None]


def _merge(first: _Part, second: _Part, dropped: int) -> _Part:
    values = first.values + second.values
    rests = [part.rest for part in (first, second) if part.rest is not None]
    if not rests and len(values) <= 2 * dropped:
        return _Part(values)
    low, over = _ends([*first.low, *second.low, *values], dropped, torch.minimum, torch.maximum)
    high = [*first.high, *second.high]
    if values:  # what is not among the lowest may be among the highest
        high, over = _ends([*high, *over], dropped, torch.maximum, torch.minimum)
        return _Part([], low, high, _sum([*rests, *over]))
    high, more = _ends(high, dropped, torch.maximum, torch.minimum)
    return _Part([], low, high, _sum([*rests, *over, *more]))


def _ends(
    values: list[Tensor], count: int, wins: Callable[..., Tensor], loses: Callable[..., Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """The ``count`` outermost values, coordinate by coordinate, and the others."""
    ends: list[Tensor] = []
    while len(ends) < count and values:
        end, *values = values
        for place, value in enumerate(values):
            values[place] = loses(end, value)
            end = wins(end, value)
        ends.append(end)
    return ends, values


def _sum(values: Sequence[Tensor]) -> Tensor:
    if len(values) == 1:
        return values[0]
    total = torch.add(values[0], values[1])
    for value in values[2:]:
        total += value
    return total
