"""The ladder of aggregators: any rule, rules by weights, rules by coordinates."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.aggregators._neighbourhood import Neighbourhood
from bezoar.aggregators._seats import Estimate, estimates
from bezoar.networks import Network


class Aggregator:
    """A rule by which every agent turns the models it has into its next model.

    A rule is a frozen dataclass whose fields are its options. It says with :meth:`wiring` what it
    needs to know of a network, and refuses with :meth:`check` a network on which it cannot work.

    Attributes:
        name: the name for :func:`~bezoar.aggregators.create` and the command line.
        label: the paper's name, for legends.
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""

    def __call__(self, messages: Tensor, network: Network) -> Tensor:
        """Aggregate everywhere at once.

        Args:
            messages: ``[..., W, D]`` what each agent sends; leading dimensions are runs.
            network: who hears whom.

        Returns:
            ``[..., W, D]`` each agent's next model.
        """
        from bezoar.aggregators._exchange import Exchange

        return Exchange(self, [network])(messages)

    def check(self, network: Network) -> None:
        """Refuse, naming the agent, a network on which the rule is impossible at some agent."""

    def wiring(self) -> tuple[str, Estimate]:
        """The mixing matrix and the estimate of poisoned inputs that the rule works with."""
        return "metropolis", "true"

    def head_shape(self) -> tuple[int, int] | None:
        """``(classes, features)`` of the output layer at the start of a message, where known."""
        return None

    def __str__(self) -> str:
        return self.label


class WeightedAggregator(Aggregator, ABC):
    """A rule that returns a combination of its inputs.

    Attributes:
        reads: what the weights depend on: ``"gram"``, the inner products of the inputs;
            ``"head"``, those of their output layers; or ``"nothing"`` but the network.
    """

    reads: ClassVar[str] = "gram"

    @abstractmethod
    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[..., m]`` the weight of each input: a probability vector, zero at padding."""


class CoordinateAggregator(Aggregator, ABC):
    """A rule that sorts each coordinate of the inputs and averages by rank."""

    @abstractmethod
    def rank_weights(self, size: Tensor, estimate: Tensor, slots: int) -> Tensor:
        """The weight of each rank.

        Args:
            size: ``[...]`` the number of inputs.
            estimate: ``[...]`` the estimated number of poisoned inputs.
            slots: the number of ranks to give weights for.

        Returns:
            ``[..., slots]`` probability vectors, zero from rank ``size`` on.
        """

    def outermost(self, largest_estimate: int) -> int | None:
        """How many ranks at either end need sorting; between them weights must be uniform.

        ``None`` when every rank may matter.
        """
        return None


def refuse_small_neighbourhoods(
    rule: Aggregator, network: Network, needed: NDArray[np.int64], condition: str
) -> None:
    """Refuse a network in which some agent has fewer inputs than the rule needs.

    Args:
        rule: who refuses.
        network: the network.
        needed: ``[W]`` the number of inputs each agent needs.
        condition: what is needed, in words.
    """
    inputs = network.degrees + 1
    lacking = np.flatnonzero(inputs < needed)
    if len(lacking):
        agent = lacking[0]
        estimate = estimates(network, rule.wiring()[1])[agent]
        raise BezoarError(
            f"aggregator {rule.name}: impossible at agent {agent} of the {network.name} network, "
            f"which has {inputs[agent]} inputs and takes {estimate} of them for poisoned, but "
            f"{condition}; lower 'estimate', or choose another rule or network"
        )
