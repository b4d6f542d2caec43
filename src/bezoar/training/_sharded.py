"""The exchanges of a shard: messages of neighbours in other shards come from other ranks."""

from dataclasses import replace

from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.exchange import Exchange, Links, Sent
from bezoar.networks import Shard
from bezoar.training._exchanges import Exchanges
from bezoar.training._ranks import Ranks
from bezoar.training._run import Run
from bezoar.training._task import Task


def check_sharded(run: Run, buffers: bool) -> None:
    """Refuse a run that several ranks cannot train.

    Args:
        run: what is trained.
        buffers: whether its model has buffers, such as batch norm's statistics.
    """
    if run.attack.lies:
        raise BezoarError(
            f"attack {run.attack.name}: it changes messages, but ranks send each other what agents "
            "hold; allowed with several ranks: attacks on labels"
        )
    if run.attack.knowledge != "own":
        raise BezoarError(
            f"attack {run.attack.name}: poisoned agents know more than their own data, which no "
            "rank has; allowed with several ranks: attacks that know their own data"
        )
    rule = run.aggregator
    if rule.samples_judged() or rule.sums_updates() or rule.auxiliary() is not None:
        raise BezoarError(
            f"aggregator {rule.name}: it looks at more than the messages of one exchange; allowed "
            "with several ranks: rules that look at these, and at what the agent remembers"
        )
    if run.network.changes:
        raise BezoarError(
            f"network: {run.network.name} changes over time; allowed with several ranks: networks "
            "that stay the same"
        )
    if buffers:
        raise BezoarError(
            "model: it has buffers such as batch norm's statistics, which cannot be averaged over "
            "several ranks; allowed: models without them"
        )


class Sharded(Exchanges):
    """The exchanges of the members of a shard.

    Rules are always applied by gathering neighbourhoods, on dense networks, too: a product over
    all pairs of agents would take all messages.

    Args:
        task: what the members learn, in one run.
        ranks: where the others are.
        shard: who is here.
    """

    def __init__(self, task: Task, ranks: Ranks, shard: Shard) -> None:
        [run], [network] = task.runs, task.runs[0].network.turns
        check_sharded(run, bool(task.buffers))
        self._ranks, self._shard = ranks, shard
        self._table: Tensor | None = None
        self.remember = bool(run.aggregator.remembers())
        self._exchange = Exchange(
            [run.aggregator],
            [network],
            layer=task.output_layer,
            device=task.device,
            map=task.workers.map,
            shard=shard,
        )

    @property
    def links(self) -> Links:
        """Where weights of inputs are in what is told: those of the members."""
        return self._exchange.links

    def at(self, iteration: int) -> "Sharded":
        """The network is the same in every iteration."""
        return self

    def memory(self, models: Tensor) -> list[Tensor]:
        """Memory for the members' messages that the halo's follow, so that none are copied."""
        self._table = models.new_empty((1, len(self._shard.heard), *models.shape[2:]))
        return [self._table[:, : models.shape[1]]]

    def __call__(
        self, sent: Sent, tell: bool = False, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Send, receive, and apply the rule; see :class:`bezoar.exchange.Exchange`."""
        own = sent.messages
        assert self._table is not None
        table = self._table.flatten(2)
        if own.data_ptr() != table.data_ptr():
            table[:, : own.shape[1]] = own
        self._ranks.fill_halo(self._shard, table[0])
        return self._exchange(replace(sent, messages=table), tell, out)
