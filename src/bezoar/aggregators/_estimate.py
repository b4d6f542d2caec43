"""How many of its inputs an agent takes for poisoned."""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from bezoar._options import Count
from bezoar.networks import Network


def _renamed(found: Any) -> Any:
    """The exact number was once called true."""
    return "exact" if found == "true" or found is True else found


#: An agent's estimate of its poisoned inputs: the exact number, the largest exact number in the
#: network, or one number for all.
Estimate = Annotated[Literal["exact", "max"] | Count, BeforeValidator(_renamed)]


def estimates(network: Network, estimate: str | int) -> NDArray[np.int64]:
    """``[W]``: every agent's estimate ``Q_w`` of the poisoned among its inputs."""
    if estimate == "exact":
        return network.poisoned_inputs
    if estimate == "max":
        return np.full(network.agents, network.poisoned_inputs.max())
    return np.full(network.agents, estimate)
