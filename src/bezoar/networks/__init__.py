"""Networks: graphs of agents, who is poisoned, mixing matrices, networks over time.

Here belongs what says who is linked to whom: topologies by name, networks from files, the value
:class:`Network`, and the weights that links have. Nothing here knows of models or training.
"""

from collections.abc import Callable
from typing import Any

from bezoar import _options
from bezoar.networks._files import from_file
from bezoar.networks._mixing import MIXINGS, Mixing
from bezoar.networks._network import Network
from bezoar.networks._over_time import NetworkOverTime
from bezoar.networks._topologies import (
    complete,
    erdos_renyi,
    fan,
    line,
    lower_bound,
    random_regular,
    ring,
    star,
    torus,
    two_castle,
)

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
    )
}

__all__ = ["MIXINGS", "NETWORKS", "Mixing", "Network", "NetworkOverTime", "create", *NETWORKS]


def create(name: str, **options: Any) -> Network:
    """The network called ``name``, made with the given options."""
    return _options.create("network", name, NETWORKS, options)
