"""Who was listened to: the weight that every agent gave to each of its inputs."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from bezoar._arrays import Ints
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.networks import Network, Shard

#: A function that is told which weights some agents gave to their slots: it is given the runs, the
#: agents' neighbourhoods and the weights ``[runs, n, m]``.
Tell = Callable[[Sequence[int], Neighbourhoods, Tensor], None]


class Links:
    """All inputs of all agents in all runs: agent by agent, the own first, then the neighbours'.

    Args:
        networks: one a run, all with the same number of agents.
        device: where weights will be.
        shard: if it is given, only its members count, and they are known by their places.
    """

    def __init__(
        self, networks: Sequence[Network], device: torch.device, shard: Shard | None = None
    ) -> None:
        self._agents = networks[0].agents if shard is None else len(shard.members)
        slots = 1 + max(int(network.degrees.max()) for network in networks)
        layouts = [
            _layout(network) if shard is None else _laid_out(network, shard.members)
            for network in networks
        ]
        # Room at the end, in which padding after the last agent's inputs may fall.
        self.length = max(ends[-1] for ends, _ in layouts) + slots
        starts, receivers, poisoned = [], [], []
        for network, (ends, senders) in zip(networks, layouts, strict=True):
            starts.append(ends[:-1])
            after = self.length - len(senders)
            receivers.append(np.pad(np.repeat(np.arange(self._agents), np.diff(ends)), (0, after)))
            poisoned.append(np.pad(network.poisoned_mask[senders], (0, after)))
        self._starts, self._receivers, self._poisoned = (
            torch.from_numpy(np.stack(part)).to(device) for part in (starts, receivers, poisoned)
        )

    def zeros(self) -> Tensor:
        """``[runs, length]`` weights, float64."""
        return torch.zeros(self._receivers.shape, dtype=torch.float64, device=self._starts.device)

    def add(
        self, weights: Tensor, runs: Sequence[int], here: Neighbourhoods, given: Tensor
    ) -> None:
        """Add what some agents gave to their slots, ``[runs, n, m]``, to ``weights``.

        A model that a rule remembers is the agent's own, so its weight counts as given to that.
        """
        numbers = torch.tensor(runs, device=weights.device)
        agents = here.index[..., 0].expand(len(runs), -1)
        first = self._starts[numbers].gather(1, agents) + self.length * numbers.unsqueeze(-1)
        places = first.unsqueeze(-1) + torch.arange(here.slots, device=weights.device)
        added = given[..., : here.slots].to(weights.dtype).clone()
        added[..., 0] += given[..., here.slots :].sum(-1)
        # Padding has no weight, so it does not matter whose inputs follow.
        weights.view(-1).index_add_(0, places.flatten(), added.flatten())

    def poison_shares(self, weights: Tensor) -> Tensor:
        """``[runs, W]`` the share of weight that each agent gave to poisoned ones."""
        shares = weights.new_zeros(len(weights), self._agents)
        return shares.scatter_add_(1, self._receivers, weights * self._poisoned)


def listening_matrix(network: Network, weights: Tensor) -> csr_array:
    """``[W, W]`` the weight that each agent, a row, gave to each agent, a column.

    Args:
        network: who hears whom.
        weights: ``[length]`` of one run, as :class:`Links` has them.
    """
    ends, senders = _layout(network)
    values = weights[: len(senders)].cpu().numpy()
    shape = (network.agents, network.agents)
    matrix = csr_array((values, senders, ends), shape=shape, copy=True)
    matrix.sort_indices()
    return matrix


@lru_cache(maxsize=64)
def _layout(network: Network) -> tuple[Ints, Ints]:
    """``[W + 1]`` where every agent's inputs begin, and ``[links]`` who is behind each."""
    return _laid_out(network, np.arange(network.agents))


def _laid_out(network: Network, agents: Ints) -> tuple[Ints, Ints]:
    """The same for some of the agents."""
    ends = np.concatenate([[0], np.cumsum(network.degrees[agents] + 1)])
    own = np.zeros(ends[-1], dtype=bool)
    own[ends[:-1]] = True
    senders = np.empty(ends[-1], dtype=np.int64)
    senders[own] = agents
    senders[~own] = network.adjacency[agents].indices
    return ends, senders
