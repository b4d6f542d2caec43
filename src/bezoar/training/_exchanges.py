"""The exchanges of a training: networks may change from iteration to iteration."""

from functools import lru_cache

from bezoar.exchange import Exchange, Tuning
from bezoar.networks import Network
from bezoar.training._task import Task

#: Exchanges kept for networks that return.
KEPT = 16


class Exchanges:
    """The exchange of every iteration of a task, known by the value of its networks."""

    def __init__(self, task: Task, tuning: Tuning) -> None:
        self._networks = [run.network for run in task.runs]
        rules = [run.aggregator for run in task.runs]
        #: Whether some rule remembers models.
        self.remember = any(rule.remembers() for rule in rules)

        def made(networks: tuple[Network, ...]) -> Exchange:
            layer, device, share = task.output_layer, task.device, task.workers.map
            return Exchange(rules, networks, layer=layer, device=device, map=share, tuning=tuning)

        self._on = lru_cache(KEPT)(made)
        self.at(1)

    def at(self, iteration: int) -> Exchange:
        """The exchange of one iteration, counted from 1."""
        return self._on(tuple(network.at(iteration) for network in self._networks))
