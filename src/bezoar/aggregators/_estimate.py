"""How many of its inputs an agent takes for poisoned."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.networks import Network

#: An agent's estimate of its poisoned inputs: the true number, the largest true number in the
#: network, or one number for all.
Estimate = Literal["true", "max"] | int


def estimates(network: Network, estimate: Estimate) -> NDArray[np.int64]:
    """``[W]``: every agent's estimate ``Q_w`` of the poisoned among its inputs."""
    if estimate == "true":
        return network.poisoned_inputs
    if estimate == "max":
        return np.full(network.agents, network.poisoned_inputs.max())
    return np.full(network.agents, estimate)


def check_estimate(estimate: Estimate) -> None:
    """Refuse a value that is not an estimate."""
    is_count = isinstance(estimate, int) and not isinstance(estimate, bool) and estimate >= 0
    if not is_count and estimate not in ("true", "max"):
        raise BezoarError(
            f"estimate: expected 'true', 'max' or a number from 0, found {estimate!r}"
        )
