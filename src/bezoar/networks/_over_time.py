"""Networks that change from iteration to iteration."""

import hashlib
from collections.abc import Callable

from bezoar._errors import BezoarError
from bezoar.networks._network import Network


class NetworkOverTime:
    """A network for every iteration, always of the same agents, the same of them poisoned.

    Args:
        networks: a list of networks used in turn, the first of them in iteration 1; or a function
            of the iteration, counted from 1. The function must give the same network whenever it
            is asked for the same iteration.
        name: what it is called in tables and legends.

    Attributes:
        agents, poisoned, regular, poisoned_mask: those of each :class:`Network`.
        turns: the networks that are used in turn; of a function, the one of iteration 1.
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
        self._networks = networks if callable(networks) else tuple(networks)
        if not self._networks:
            raise BezoarError("network: a network over time needs at least one, found none")
        first = self._get(1)
        self.agents, self.poisoned = first.agents, first.poisoned
        self.regular, self.poisoned_mask = first.regular, first.poisoned_mask
        turns = 1 if callable(self._networks) else len(self._networks)
        self.turns = tuple(self.at(iteration) for iteration in range(1, turns + 1))

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
        if callable(self._networks):
            network = self._networks(iteration)
        else:
            network = self._networks[(iteration - 1) % len(self._networks)]
        if not isinstance(network, Network):
            raise BezoarError(
                f"network: expected a Network in iteration {iteration}, found {network!r}"
            )
        return network

    def identity(self, iterations: int) -> str:
        """What identifies it in a training: a checksum of the networks of all iterations."""
        known = iterations if callable(self._networks) else len(self.turns)
        fingerprints = (self.at(iteration).fingerprint for iteration in range(1, known + 1))
        return f"over time {hashlib.sha256(''.join(fingerprints).encode()).hexdigest()}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NetworkOverTime) and self._networks == other._networks

    def __hash__(self) -> int:
        return hash(self._networks)

    def __repr__(self) -> str:
        return f"NetworkOverTime({self._networks!r}, name={self.name!r})"
