"""Minimax regret: the order of rules by what they lost against the best rule of a case."""

from collections.abc import Mapping
from typing import NamedTuple

#: Rules whose accuracies differ by no more than this are as good as each other.
SMALL = 0.02


class Regret(NamedTuple):
    """What a rule lost at most, and on average."""

    worst: float
    mean: float


def by_regret(regrets: Mapping[str, Regret]) -> list[str]:
    """Rules by their largest regret, the least first.

    A largest regret is that of one case. So rules within ``SMALL`` of the least one are tied, and
    go by their mean regret.
    """
    least = min((regret.worst for regret in regrets.values()), default=0.0)

    def key(rule: str) -> tuple[float, float]:
        worst, mean = regrets[rule]
        return max(0.0, worst - least - SMALL), mean

    return sorted(regrets, key=key)
