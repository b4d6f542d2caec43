"""Who hears whom, laid out in slots: what every aggregator needs to know of a network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.networks import Network

#: An agent's estimate of its poisoned inputs: the true number, the largest true number in the
#: network, or one number for all.
Estimate = Literal["true", "max"] | int


@dataclass(frozen=True)
class Seats:
    """The inputs of some agents in ``networks`` networks side by side.

    Slot 0 is the agent's own model, the others its neighbours' in ascending order, padded to the
    largest neighbourhood.

    Attributes:
        agents: ``[seats]`` the agents who sit here.
        index: ``[networks, seats, slots]`` the agent behind each slot; padding repeats the own.
        mask: ``[networks, seats, slots]`` false at padding.
        mixing: ``[networks, seats, slots]`` the agent's row of the mixing matrix, float64.
        estimate: ``[networks, seats]`` the estimated number of poisoned inputs.
        poisoned: ``[networks, seats, slots]`` whether a poisoned agent is behind the slot. For
            measuring who was listened to; rules do not see it.
        largest_estimate: the largest estimate, on the host.
        fewest: the smallest number of inputs, on the host.
    """

    agents: Tensor
    index: Tensor
    mask: Tensor
    mixing: Tensor
    estimate: Tensor
    poisoned: Tensor
    largest_estimate: int
    fewest: int

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.index.shape[-1]

    @property
    def consecutive(self) -> bool:
        """Whether the agents here are numbered without gaps."""
        return int(self.agents[-1]) - int(self.agents[0]) + 1 == len(self.agents)

    def some(self, start: int, stop: int) -> "Seats":
        """The seats from ``start`` up to ``stop``."""
        return replace(
            self,
            agents=self.agents[start:stop],
            index=self.index[:, start:stop],
            mask=self.mask[:, start:stop],
            mixing=self.mixing[:, start:stop],
            estimate=self.estimate[:, start:stop],
            poisoned=self.poisoned[:, start:stop],
        )

    def to(self, device: torch.device) -> "Seats":
        """The same on another device."""
        return replace(
            self,
            **{
                field: getattr(self, field).to(device)
                for field in ("agents", "index", "mask", "mixing", "estimate", "poisoned")
            },
        )


@lru_cache(maxsize=64)
def seat(
    networks: tuple[Network, ...],
    mixing: str = "metropolis",
    estimate: Estimate = "true",
    together: bool = True,
) -> list[Seats]:
    """Seat the agents of networks of one size.

    Args:
        networks: one network for all runs, or one a run.
        mixing: which mixing matrix.
        estimate: the agents' estimate of their poisoned inputs.
        together: everyone in one group, as small dense networks want it; otherwise agents with
            neighbourhoods of like size sit together, so that a hub does not pad everyone.
    """
    slots = np.max([network.degrees for network in networks], axis=0) + 1
    groups = [np.arange(len(slots))] if together else _like_sizes(slots)
    rows = [_Rows(network, mixing, estimate) for network in networks]
    return [_seat_group(rows, group, int(slots[group].max())) for group in groups]


def estimates(network: Network, estimate: Estimate) -> NDArray[np.int64]:
    """``[W]``: every agent's estimate ``Q_w`` of the poisoned among its inputs."""
    if estimate == "true":
        return network.poisoned_inputs
    if estimate == "max":
        return np.full(network.agents, network.poisoned_inputs.max())
    return np.full(network.agents, estimate)


def check_estimate(estimate: Estimate) -> None:
    """Refuse what is no estimate."""
    is_count = isinstance(estimate, int) and not isinstance(estimate, bool) and estimate >= 0
    if not is_count and estimate not in ("true", "max"):
        raise BezoarError(
            f"estimate: expected 'true', 'max' or a number from 0, found {estimate!r}"
        )


def _like_sizes(slots: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The agents in groups whose neighbourhoods differ by at most a quarter."""
    order = np.argsort(slots, kind="stable")
    groups = []
    start = 0
    ascending = slots[order]
    while start < len(order):
        limit = ascending[start] + max(1, ascending[start] // 4)
        stop = int(np.searchsorted(ascending, limit, side="right"))
        groups.append(np.sort(order[start:stop]))
        start = stop
    return groups


class _Rows:
    """The closed neighbourhoods of one network, own agent first."""

    def __init__(self, network: Network, mixing: str, estimate: Estimate) -> None:
        self.network = network
        self.mixing = network.mixing(mixing)
        self.estimate = estimates(network, estimate)

    def fill(
        self, group: NDArray[np.int64], slots: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]:
        adjacency, degrees = self.network.adjacency, self.network.degrees[group]
        index = np.repeat(group[:, None], slots, axis=1)
        mask = np.arange(slots) <= degrees[:, None]
        neighbours = mask.copy()
        neighbours[:, 0] = False
        index[neighbours] = adjacency[group].indices
        diagonal = self.mixing.diagonal()[group]
        weights = np.zeros(index.shape)
        rows = self.mixing[group].tocoo()
        others = rows.col != group[rows.row]
        weights[neighbours] = rows.data[others]
        weights[:, 0] = diagonal
        return index, mask, weights


def _seat_group(rows: Sequence[_Rows], group: NDArray[np.int64], slots: int) -> Seats:
    filled = [row.fill(group, slots) for row in rows]
    estimate = np.stack([row.estimate[group] for row in rows])
    index, mask, weights = (np.stack(part) for part in zip(*filled, strict=True))
    poisoned = np.stack(
        [row.network.poisoned_mask[part[0]] for row, part in zip(rows, filled, strict=True)]
    )
    return Seats(
        agents=torch.from_numpy(group),
        index=torch.from_numpy(index),
        mask=torch.from_numpy(mask),
        mixing=torch.from_numpy(weights),
        estimate=torch.from_numpy(estimate),
        poisoned=torch.from_numpy(poisoned & mask),
        largest_estimate=int(estimate.max()),
        fewest=int(mask.sum(-1).min()),
    )
