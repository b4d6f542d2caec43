"""Networks cut into shards: one for each of several processes, with few links between them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import reverse_cuthill_mckee

from bezoar._arrays import Ints
from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar.networks._network import Network


@dataclass(frozen=True, eq=False)
class Shard:
    """What one of several processes has of a network.

    Attributes:
        members: ``[n]`` the agents of the shard, ascending.
        halo: ``[h]`` the neighbours of these in other shards: by shard, then ascending.
        received: ``[shards]`` how many of the halo are in each shard.
        sent: for every shard the places among the members of those that it hears, ascending.
    """

    members: Ints
    halo: Ints
    received: Ints
    sent: tuple[Ints, ...]

    @cached_property
    def heard(self) -> Ints:
        """``[n + h]`` the agents whose messages are here: the members, then the halo."""
        return np.concatenate([self.members, self.halo])


def shard_owners(network: Network, shards: int) -> Ints:
    """``[W]`` the shard of every agent: shards of about one size, with few links between them.

    It is done by METIS where ``pymetis`` is installed, otherwise by the reverse Cuthill-McKee
    order, in which neighbours are near to each other.
    """
    if whole("shards", shards, 1) > network.agents:
        raise BezoarError(
            f"shards: expected at most {network.agents}, one for each agent of the {network.name} "
            f"network, found {shards}"
        )
    owner = _by_metis(network, shards)
    if owner is None or np.bincount(owner, minlength=shards).min() == 0:
        order = reverse_cuthill_mckee(network.adjacency, symmetric_mode=True)
        owner = np.empty(network.agents, dtype=np.int64)
        owner[order] = np.arange(network.agents) * shards // network.agents
    return owner


def _by_metis(network: Network, shards: int) -> Ints | None:
    """What METIS makes of it; ``None`` where it is not installed."""
    try:
        import pymetis
    except ImportError:
        return None
    links = pymetis.CSRAdjacency(network.adjacency.indptr, network.adjacency.indices)
    _, owner = pymetis.part_graph(shards, links)
    return np.asarray(owner, dtype=np.int64)


def shard_of(network: Network, owner: Ints, number: int) -> Shard:
    """One of the shards that :func:`shard_owners` found, and what it hears of and sends to others.

    Args:
        network: who hears whom.
        owner: ``[W]`` the shard of every agent.
        number: which shard.
    """
    shards = int(owner.max()) + 1
    members = np.flatnonzero(owner == number)
    links = network.adjacency[members]
    place = np.repeat(np.arange(len(members)), np.diff(links.indptr))
    outside = owner[links.indices] != number
    other, place = links.indices[outside].astype(np.int64), place[outside]
    theirs = owner[other]
    heard = np.unique(theirs * network.agents + other)
    told = np.unique(theirs * len(members) + place)
    ends = np.searchsorted(told, np.arange(1, shards) * len(members))
    return Shard(
        members,
        heard % network.agents,
        np.bincount(heard // network.agents, minlength=shards),
        tuple(np.split(told % len(members), ends)),
    )
