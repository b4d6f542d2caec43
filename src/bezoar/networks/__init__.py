"""Networks: graphs of agents, who is poisoned, mixing matrices, networks over time.

Here belongs what says who is linked to whom: topologies by name, networks from files, the value
:class:`Network`, and the weights that links have. Nothing here knows of models or training.
"""

from collections.abc import Callable
from typing import Any

from bezoar import _options
from bezoar.networks._files import READERS, from_edges, from_file
from bezoar.networks._mixing import MIXINGS, Mixing
from bezoar.networks._network import Network, as_network, check_network
from bezoar.networks._over_time import NetworkOverTime, over_time
from bezoar.networks._placement import PLACEMENTS, place, worst_agent
from bezoar.networks._shards import Shard, shard_of, shard_owners
from bezoar.networks._topologies import (
    Poisoned,
    complete,
    erdos_renyi,
    fan,
    line,
    lower_bound,
    poison,
    random_regular,
    ring,
    star,
    torus,
    two_castle,
)
from bezoar.networks._unreliable import UnreliableNetwork

#: Every network that can be made from its name and options.
NETWORKS: dict[str, Callable[..., Network]] = {
    make.__name__: make
    for make in (
        two_castle,
        line,
        fan,
        lower_bound,
        complete,
        ring,
        star,
        torus,
        erdos_renyi,
        random_regular,
        from_file,
        from_edges,
        over_time,
    )
}

__all__ = [
    "MIXINGS",
    "NETWORKS",
    "PLACEMENTS",
    "READERS",
    "Mixing",
    "Network",
    "NetworkOverTime",
    "Poisoned",
    "Shard",
    "UnreliableNetwork",
    "as_network",
    "check_network",
    "complete",
    "create",
    "erdos_renyi",
    "fan",
    "from_edges",
    "from_file",
    "line",
    "lower_bound",
    "over_time",
    "place",
    "poison",
    "random_regular",
    "ring",
    "shard_of",
    "shard_owners",
    "star",
    "torus",
    "two_castle",
    "worst_agent",
]


def create(name: str, **options: Any) -> Network:
    """The network called ``name``, made with the given options."""
    return _options.create("network", name, NETWORKS, options)
