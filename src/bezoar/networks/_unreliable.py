"""Networks whose links and agents are silent now and then."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse

from bezoar._arrays import Bools, Floats, Ints
from bezoar._checks import share, whole
from bezoar._seeds import Purpose, generator
from bezoar.networks._mixing import with_diagonal
from bezoar.networks._network import Network, any_network
from bezoar.networks._over_time import NetworkOverTime


class RemainingNetwork(Network):
    """What is left of a network while some of its links are silent; it may fall into pieces.

    The weight of a silent link in a mixing matrix goes to the diagonal.

    Args:
        whole: the network with all links.
        kept: ``[2 · links]`` which of the entries of its adjacency matrix are left.
    """

    def __init__(self, whole: Network, kept: Bools) -> None:
        self.name, self.note = whole.name, whole.note
        self.names, self.positions, self.poisoned = whole.names, whole.positions, whole.poisoned
        self._whole, self._kept = whole, kept
        entries = whole.adjacency
        before = np.concatenate([[0], np.cumsum(kept)])
        parts = (entries.data[kept], entries.indices[kept], before[entries.indptr])
        self.adjacency = sparse.csr_array(parts, shape=entries.shape)

    @property
    def whole(self) -> Network:
        """The network with all of its links."""
        return self._whole

    def with_poisoned(self, poisoned: Iterable[int | str], note: str = "") -> Network:
        """The same with other agents poisoned."""
        return RemainingNetwork(self._whole.with_poisoned(poisoned, note), self._kept)

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the whole network and of what is left of it."""
        return f"{super().fingerprint} of {self._whole.fingerprint}"

    def mixing(self, kind: str = "metropolis") -> sparse.csr_array:
        """The doubly stochastic mixing matrix ``E [W, W]``."""
        return with_diagonal(self.adjacency, _weights(self._whole, kind)[self._kept])


class UnreliableNetwork(NetworkOverTime):
    """A network whose links and agents are silent now and then.

    Two agents do not hear each other while the link between them is silent; an agent that is silent
    has none of its links. What happens in an iteration is drawn for every link and agent by the
    seed and the iteration: a link's number is its place among the network's links.

    Args:
        network: the network with all links; it may itself change over time.
        silent_links: the probability that a link is silent in an iteration.
        silent_agents: the probability that an agent is silent in an iteration.
        seed: what random choices follow from.
    """

    def __init__(
        self,
        network: Network,
        *,
        silent_links: float = 0.0,
        silent_agents: float = 0.0,
        seed: int = 0,
    ) -> None:
        links, agents = share("silent_links", silent_links), share("silent_agents", silent_agents)
        network = any_network(network)
        self._losses = _Losses(network, links, agents, whole("seed", seed, 0))
        super().__init__(self._losses, name=network.name)
        self.adjacency, self._turns, self.note = network.adjacency, network.turns, network.note

    def with_poisoned(self, poisoned: Iterable[int | str], note: str = "") -> Network:
        """The same with other agents poisoned."""
        losses, network = self._losses, self._losses.network.with_poisoned(poisoned, note)
        return UnreliableNetwork(
            network, silent_links=losses.links, silent_agents=losses.agents, seed=losses.seed
        )

    def identity(self, iterations: int) -> str:
        """What identifies it in a training: the network, and what decides who is silent."""
        losses = self._losses
        return (
            f"{losses.network.identity(iterations)} with silent links {losses.links} and agents "
            f"{losses.agents} by seed {losses.seed}"
        )


@dataclass(frozen=True)
class _Losses:
    """What is left of a network in every iteration."""

    network: Network
    links: float
    agents: float
    seed: int

    def __call__(self, iteration: int) -> Network:
        whole = self.network.at(iteration)
        return _remaining(self, iteration, (whole.name, *whole.names))


@lru_cache(maxsize=16)
def _remaining(losses: _Losses, iteration: int, names: tuple[str, ...]) -> RemainingNetwork:
    """What is left, shared by runs on the same network; equal networks may have other ``names``."""
    whole = losses.network.at(iteration)
    rows, numbers = _entries(whole)

    def drawn(purpose: Purpose, probability: float, count: int) -> Bools:
        return generator(losses.seed, purpose, iteration=iteration).random(count) < probability

    links = drawn(Purpose.SILENT_LINKS, losses.links, len(numbers) // 2)
    agents = drawn(Purpose.SILENT_AGENTS, losses.agents, whole.agents)
    silent: Bools = links[numbers] | agents[rows] | agents[whole.adjacency.indices]
    return RemainingNetwork(whole, ~silent)


@lru_cache(maxsize=64)
def _entries(network: Network) -> tuple[Ints, Ints]:
    """``[2 · links]`` the row of each entry of the adjacency matrix, and the link's number."""
    columns = network.adjacency.indices.astype(np.int64)
    rows = np.repeat(np.arange(network.agents), network.degrees)
    pairs = np.minimum(rows, columns) * network.agents + np.maximum(rows, columns)
    return rows, np.unique(pairs, return_inverse=True)[1].ravel()


@lru_cache(maxsize=64)
def _weights(network: Network, kind: str) -> Floats:
    """``[2 · links]`` the mixing weight of each entry of the adjacency matrix."""
    matrix = network.mixing(kind).tocoo()
    weights: Floats = matrix.data[matrix.row != matrix.col]
    return weights
