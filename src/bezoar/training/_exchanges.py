"""The exchanges of a training: networks may change from iteration to iteration."""

from collections import OrderedDict

from bezoar.exchange import Exchange, Tuning
from bezoar.networks import Network
from bezoar.training._task import Task

#: Exchanges kept for networks that return.
KEPT = 16


class Exchanges:
    """The exchange of every iteration, known by the value of its networks.

    Args:
        task: the runs, and the threads that share the work.
        tuning: how exchanges are computed.
    """

    def __init__(self, task: Task, tuning: Tuning) -> None:
        self._task, self._tuning = task, tuning
        self._known: OrderedDict[tuple[Network, ...], Exchange] = OrderedDict()
        self.at(1)

    @property
    def remember(self) -> bool:
        """Whether some rule remembers models."""
        return any(run.aggregator.remembers() for run in self._task.runs)

    def at(self, iteration: int) -> Exchange:
        """The exchange of one iteration, counted from 1."""
        networks = tuple(run.network.at(iteration) for run in self._task.runs)
        if networks in self._known:
            self._known.move_to_end(networks)
            return self._known[networks]
        exchange = Exchange(
            [run.aggregator for run in self._task.runs],
            networks,
            layer=self._task.output_layer,
            device=self._task.device,
            map=self._task.workers.map,
            tuning=self._tuning,
        )
        self._known[networks] = exchange
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return exchange
