"""The exchanges of a training: networks may change from iteration to iteration."""

from functools import lru_cache
from typing import Protocol

from torch import Tensor

from bezoar.exchange import Exchange, Links, Sent, Tuning
from bezoar.networks import Network
from bezoar.training._task import Task

#: Exchanges kept for networks that return.
KEPT = 16


class OneExchange(Protocol):
    """Turns what is sent in one iteration into next models; see :class:`bezoar.exchange.Exchange`.

    One that does not know the weights of inputs has no :attr:`links`, and is not asked for weights.
    """

    @property
    def links(self) -> Links:
        """Where weights of inputs are in what is told."""

    def __call__(
        self, sent: Sent, tell: bool = False, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The next models, and the weights if they are asked for."""


class Exchanges(Protocol):
    """How messages become models in every iteration of a training.

    Attributes:
        remember: whether some rule remembers models.
    """

    remember: bool

    def at(self, iteration: int) -> OneExchange:
        """The exchange of one iteration, counted from 1."""

    def memory(self, models: Tensor) -> list[Tensor]:
        """Memory like the models in which messages are best written, if there is any."""
        return []

    def reached(self, iteration: int) -> int:
        """How many iterations are done after the exchange of one.

        That is more than one further where somebody who lagged behind jumps forward.
        """
        return iteration


class InMemory(Exchanges):
    """The exchange of every iteration of a task, known by the value of its networks."""

    def __init__(self, task: Task, tuning: Tuning) -> None:
        self._networks = [run.network for run in task.runs]
        rules = [run.aggregator for run in task.runs]
        self.remember = any(rule.remembers() for rule in rules)

        def made(networks: tuple[Network, ...]) -> Exchange:
            layer, device, share = task.output_layer, task.device, task.workers.map
            return Exchange(rules, networks, layer=layer, device=device, map=share, tuning=tuning)

        self._returning, self._passing = lru_cache(KEPT)(made), lru_cache(1)(made)
        self.at(1)

    def at(self, iteration: int) -> Exchange:
        """The exchange of one iteration, counted from 1."""
        networks = tuple(network.at(iteration) for network in self._networks)
        # What silent links leave of a network rarely comes again.
        returns = all(network is network.whole for network in networks)
        return (self._returning if returns else self._passing)(networks)
