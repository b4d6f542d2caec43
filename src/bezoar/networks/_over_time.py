"""Networks that change from iteration to iteration."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from scipy import sparse

from bezoar._errors import BezoarError
from bezoar._options import create
from bezoar._parts import check_made, maker
from bezoar.networks._network import Network, as_network


class NetworkOverTime(Network):
    """A network for every iteration; the agents, and who of them is poisoned, stay the same.

    Args:
        networks: a list of networks used in turn, the first of them in iteration 1; or a function
            of the iteration, counted from 1. The function must give the same network whenever it
            is asked for the same iteration.
        name: what it is called in tables and legends.

    Its own links, for pictures, are all that are ever used; of a function, those of iteration 1.
    """

    changes: ClassVar[bool] = True

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
        self._networks = networks if callable(networks) else tuple(map(as_network, networks))
        if not self._networks:
            raise BezoarError("network: a network over time needs at least one, found none")
        first = self._get(1)
        self.name, self.note = name, first.note
        self.names, self.positions = first.names, first.positions
        self.adjacency, self.poisoned = first.adjacency, first.poisoned
        turns = 1 if callable(self._networks) else len(self._networks)
        self._turns = tuple(self.at(iteration) for iteration in range(1, turns + 1))
        if turns > 1:
            self.adjacency = _every_link(self._turns)
            told = f"all links of {turns} networks that are used in turn"
            self.note = "; ".join(filter(None, (self.note, told)))

    def at(self, iteration: int) -> Network:
        """The network of one iteration, counted from 1."""
        network = self._get(iteration)
        if (network.agents, network.poisoned) != (self.agents, self.poisoned):
            raise BezoarError(
                f"network: expected {self.agents} agents with {list(self.poisoned)} poisoned in "
                f"every iteration, found {network.agents} with {list(network.poisoned)} in "
                f"iteration {iteration}"
            )
        if network.names != self.names:
            wrong = next(n for n, name in enumerate(network.names) if name != self.names[n])
            raise BezoarError(
                f"network: expected the same agents in the same order in every iteration, found "
                f"{network.names[wrong]!r} for {self.names[wrong]!r} in iteration {iteration}"
            )
        return network

    @property
    def turns(self) -> tuple[Network, ...]:
        """The networks that are used in turn; of a function, the one of iteration 1."""
        return self._turns

    def _get(self, iteration: int) -> Network:
        if callable(self._networks):
            network = as_network(self._networks(iteration))
        else:
            network = self._networks[(iteration - 1) % len(self._networks)]
        if not isinstance(network, Network) or network.changes:
            raise BezoarError(
                f"network: expected a Network in iteration {iteration}, found {network!r}"
            )
        return network

    def with_poisoned(self, poisoned: Iterable[int | str], note: str = "") -> Network:
        """The same networks with other agents poisoned, given by their numbers or names."""
        agents, made = self._numbers(poisoned), self._networks
        if callable(made):
            return NetworkOverTime(_Poisoned(made, agents, note), name=self.name)
        return NetworkOverTime([each.with_poisoned(agents, note) for each in made], name=self.name)

    def mixing(self, kind: str = "metropolis") -> sparse.csr_array:
        """Refused: every iteration has its own."""
        raise BezoarError(f"mixing: {self.name} changes; every network.at(iteration) has its own")

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the networks that are used in turn; a function has none."""
        if callable(self._networks):
            raise BezoarError("network: a function of the iteration cannot be told from another")
        return self.identity(0).removeprefix("over time ")

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


@dataclass(frozen=True)
class _Poisoned:
    """The networks of a function of the iteration, with other agents poisoned.

    It is no function inside another, so that it can be sent to other processes.
    """

    networks: Callable[[int], Network]
    poisoned: tuple[int, ...]
    note: str

    def __call__(self, iteration: int) -> Network:
        network: Network = as_network(self.networks(iteration))
        return network.with_poisoned(self.poisoned, self.note)


def over_time(networks: list[str | dict[str, Any]]) -> Network:
    """Several networks of the same agents, used in turn: ``{ over_time = ["fan", "line"] }``.

    Poisoned are the agents that the first of them says, unless the spec's ``poisoned`` does.

    Args:
        networks: names, or tables with a name and options.
    """
    if not networks:
        raise BezoarError("networks: expected at least one, found none")
    first, *others = [_made(each) for each in networks]
    for other in others:
        if other.agents != first.agents:
            raise BezoarError(
                f"networks: expected {first.agents} agents in each, as in the first, found "
                f"{other.agents} in {other.name}"
            )
    try:
        return NetworkOverTime([first, *(each.with_poisoned(first.poisoned) for each in others)])
    except BezoarError as error:
        raise BezoarError(str(error).removeprefix("network: ")) from None


def _made(found: str | dict[str, Any]) -> Network:
    table = {"name": found} if isinstance(found, str) else found
    if not isinstance(table, dict) or not isinstance(name := table.get("name"), str):
        raise BezoarError(f"networks: expected names or tables with a name, found {found!r}")
    options = {key: table[key] for key in table if key != "name"}
    made = create("network", name, {name: maker("network", name)}, options)
    network: Network = check_made("network", name, made)
    return network


def _every_link(networks: tuple[Network, ...]) -> sparse.csr_array:
    """``[W, W]`` one where two agents are linked in some network."""
    counts = sparse.csr_array(sum(each.adjacency for each in networks))
    counts.data[:] = 1
    counts.sort_indices()
    return counts
