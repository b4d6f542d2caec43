"""Networks that change from iteration to iteration."""

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.networks._network import Network


class NetworkOverTime:
    """A network for every iteration, always of the same agents, the same of them poisoned.

    Args:
        networks: a list of networks used in turn, the first of them in iteration 1; or a function
            of the iteration, counted from 1. The function must give the same network whenever it
            is asked for the same iteration.
        name: what it is called in tables and legends.
    """

    def __init__(
        self,
        networks: list[Network] | tuple[Network, ...] | Callable[[int], Network],
        *,
        name: str = "over time",
    ) -> None:
        if not callable(networks) and not isinstance(networks, list | tuple):
            raise BezoarError(
                "network: expected a Network, a list of them or a function of the iteration, "
                f"found {networks!r}"
            )
        self.name = name
        self._function = networks if callable(networks) else None
        self._turns = () if callable(networks) else tuple(networks)
        if self._function is None and not self._turns:
            raise BezoarError("network: a network over time needs at least one, found none")
        self._first = self._get(1)
        for iteration in range(2, len(self._turns) + 1):
            self.at(iteration)

    def at(self, iteration: int) -> Network:
        """The network of one iteration, counted from 1."""
        network = self._get(iteration)
        if (network.agents, network.poisoned) != (self.agents, self.poisoned):
            raise BezoarError(
                f"network: expected {self.agents} agents with {list(self.poisoned)} poisoned in "
                f"every iteration, found {network.agents} with {list(network.poisoned)} in "
                f"iteration {iteration}"
            )
        return network

    def _get(self, iteration: int) -> Network:
        turn = self._turns[(iteration - 1) % len(self._turns)] if self._turns else None
        network = self._function(iteration) if self._function else turn
        if not isinstance(network, Network):
            raise BezoarError(
                f"network: expected a Network in iteration {iteration}, found {network!r}"
            )
        return network

    @property
    def turns(self) -> tuple[Network, ...]:
        """The networks that are used in turn; of a function, the one of iteration 1."""
        return self._turns or (self._first,)

    @property
    def agents(self) -> int:
        """The number of agents, ``W``."""
        return self._first.agents

    @property
    def poisoned(self) -> tuple[int, ...]:
        """The poisoned agents, ascending."""
        return self._first.poisoned

    @property
    def regular(self) -> tuple[int, ...]:
        """The regular agents, ascending."""
        return self._first.regular

    @property
    def poisoned_mask(self) -> NDArray[np.bool_]:
        """``[W]``: true where the agent is poisoned."""
        return self._first.poisoned_mask

    def identity(self, iterations: int) -> str:
        """What tells it from others in a training: the networks of all its iterations."""
        known = range(1, (iterations if self._function else len(self._turns)) + 1)
        digest = hashlib.sha256()
        for iteration in known:
            digest.update(self.at(iteration).fingerprint.encode())
        return f"over time {digest.hexdigest()}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NetworkOverTime) and (
            (self._turns, self._function) == (other._turns, other._function)
        )

    def __hash__(self) -> int:
        return hash((self._turns, self._function))

    def __repr__(self) -> str:
        inside = self._function if self._function is not None else list(self._turns)
        return f"NetworkOverTime({inside!r}, name={self.name!r})"
