"""Who hears whom, laid out in slots: what every aggregator needs to know of a network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar.aggregators import Estimate, estimates
from bezoar.networks import Network

_TENSORS = ("agents", "index", "mask", "mixing", "estimate", "poisoned")


@dataclass(frozen=True)
class Neighbourhoods:
    """The inputs of some agents in ``networks`` networks side by side.

    Slot 0 is the agent's own message, the others its neighbours' in ascending order.

    Attributes:
        agents: ``[n]`` whose inputs these are.
        index: ``[networks, n, slots]`` the agent behind each slot; padding repeats the own.
        mask: ``[networks, n, slots]`` false at padding.
        mixing: ``[networks, n, slots]`` the agent's row of the mixing matrix, float64.
        estimate: ``[networks, n]`` the estimated number of poisoned inputs.
        poisoned: ``[networks, n, slots]`` whether a poisoned agent is behind the slot. For
            measuring who was listened to; rules do not see it.
        largest_estimate: the largest estimate, on the host.
    """

    agents: Tensor
    index: Tensor
    mask: Tensor
    mixing: Tensor
    estimate: Tensor
    poisoned: Tensor
    largest_estimate: int

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.index.shape[-1]

    def some(self, start: int, stop: int) -> "Neighbourhoods":
        """Those of the agents from place ``start`` up to ``stop``."""
        parts = {name: getattr(self, name)[:, start:stop] for name in _TENSORS[1:]}
        return replace(self, agents=self.agents[start:stop], **parts)

    def to(self, device: torch.device) -> "Neighbourhoods":
        """The same on another device."""
        return replace(self, **{name: getattr(self, name).to(device) for name in _TENSORS})


@lru_cache(maxsize=64)
def padded(networks: tuple[Network, ...], mixing: str, estimate: Estimate) -> Neighbourhoods:
    """The inputs of all agents, padded to the largest neighbourhood.

    Args:
        networks: networks of one size.
        mixing: which mixing matrix.
        estimate: the agents' estimate of their poisoned inputs.
    """
    slots = 1 + max(int(network.degrees.max()) for network in networks)
    everyone = np.arange(networks[0].agents)
    return _lay_out([_Rows(network, mixing, estimate) for network in networks], everyone, slots)


@lru_cache(maxsize=64)
def by_size(network: Network, mixing: str, estimate: Estimate) -> tuple[Neighbourhoods, ...]:
    """The inputs of all agents, those with as many inputs and the same estimate together.

    So nothing is padded, and an agent is computed just as it would be alone.
    """
    rows = _Rows(network, mixing, estimate)
    sizes = np.stack([network.degrees + 1, rows.estimate])
    kinds, which = np.unique(sizes, axis=1, return_inverse=True)
    return tuple(
        _lay_out([rows], np.flatnonzero(which.ravel() == kind), int(slots))
        for kind, slots in enumerate(kinds[0])
    )


class _Rows:
    """The closed neighbourhoods of one network, own agent first."""

    def __init__(self, network: Network, mixing: str, estimate: Estimate) -> None:
        self.network = network
        self.mixing = network.mixing(mixing)
        self.estimate = estimates(network, estimate)

    def fill(
        self, agents: NDArray[np.int64], slots: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]:
        adjacency, degrees = self.network.adjacency, self.network.degrees[agents]
        index = np.repeat(agents[:, None], slots, axis=1)
        mask = np.arange(slots) <= degrees[:, None]
        neighbours = mask.copy()
        neighbours[:, 0] = False
        index[neighbours] = adjacency[agents].indices
        weights = np.zeros(index.shape)
        rows = self.mixing[agents].tocoo()
        others = rows.col != agents[rows.row]
        weights[neighbours] = rows.data[others]
        weights[:, 0] = self.mixing.diagonal()[agents]
        return index, mask, weights


def _lay_out(rows: Sequence[_Rows], agents: NDArray[np.int64], slots: int) -> Neighbourhoods:
    filled = [row.fill(agents, slots) for row in rows]
    estimate = np.stack([row.estimate[agents] for row in rows])
    index, mask, weights = (np.stack(part) for part in zip(*filled, strict=True))
    poisoned = np.stack(
        [row.network.poisoned_mask[part[0]] for row, part in zip(rows, filled, strict=True)]
    )
    return Neighbourhoods(
        agents=torch.from_numpy(agents),
        index=torch.from_numpy(index),
        mask=torch.from_numpy(mask),
        mixing=torch.from_numpy(weights),
        estimate=torch.from_numpy(estimate),
        poisoned=torch.from_numpy(poisoned & mask),
        largest_estimate=int(estimate.max()),
    )
