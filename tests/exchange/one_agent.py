"""What one agent sees of an exchange, and every rule, for tests that compare it with the whole."""

import numpy as np

from bezoar import aggregators
from bezoar.exchange import Exchange, Sent, Tuning

#: Rules that go by losses of inputs or by sums of updates, which only a training knows.
IN_TRAINING = {
    name
    for name, rule in aggregators.AGGREGATORS.items()
    if rule().samples_judged() or rule().sums_updates()
}


def every_rule(threshold=1.0, head=None, estimate="exact", trimmed=None):
    """Every rule that needs no training, some also with options that change what they compute.

    Args:
        threshold: what rules that clip are given, in the units of the messages.
        head: the shape of the output layer; without one, rules that need it are left out.
        estimate: what rules that drop inputs are given.
        trimmed: the same for the trimmed mean, which needs more inputs than others.
    """
    rules = [
        aggregators.WeightedMean(),
        aggregators.TrimmedMean(estimate if trimmed is None else trimmed),
        aggregators.TrimmedMean(estimate if trimmed is None else trimmed, keep_own=True),
        aggregators.FABA(estimate),
        aggregators.FABA(estimate, keep_own=True),
        aggregators.CenteredClipping(threshold, steps=3),
        aggregators.CenteredClipping(threshold, steps=2, memory=True),
        aggregators.ClippedGossip(threshold),
        aggregators.IOS(estimate=estimate),
        aggregators.IOS(mixing="equal", estimate=estimate, keep_own=True),
        aggregators.RFA(),
        aggregators.Mean(),
        aggregators.Median(),
        aggregators.Krum(estimate),
        aggregators.Krum(estimate, keep="most"),
        aggregators.Nearest(estimate),
        aggregators.ClippedGossip("adaptive", estimate=estimate),
        aggregators.ClippedSum(estimate),
        aggregators.TrimmedSum(estimate),
        aggregators.LeastDiameter(estimate),
        aggregators.LeastVariance(estimate),
        aggregators.LeastEigenvalue(estimate),
        aggregators.DivideAndConquer(estimate),
        aggregators.Balance(reach=1.5),
        aggregators.create("nnm+krum", estimate=estimate),
        aggregators.create("arc+trimmed_mean", estimate=estimate if trimmed is None else trimmed),
        aggregators.create("bucketing+faba", estimate=0),
        aggregators.CAF(estimate if trimmed is None else trimmed),
        aggregators.MeaMed(estimate),
        aggregators.TotalVariation(strength=threshold / 100),
        aggregators.DistanceFilter(estimate if trimmed is None else trimmed),
        aggregators.Bulyan(0 if trimmed == 0 else "up_to_1"),
        aggregators.Local(),
    ]
    return rules if head is None else [*rules, aggregators.LFighter(head)]


def whole_network(rule, networks, messages, previous, tuning=None):
    """``[runs, W, D]`` every agent's next model, from one exchange.

    Args:
        rule: the rule of all agents.
        networks: who hears whom, one network a run.
        messages: ``[runs, W, D]`` what the agents send.
        previous: ``[runs, W, D]`` what they remember.
        tuning: how the exchange is computed.
    """
    exchange = Exchange([rule] * len(networks), networks, tuning=tuning or Tuning())
    remembered = {"previous_output": previous, "model_before_step": previous}
    return exchange(Sent(messages, None, remembered))[0]


class Seen:
    """What each agent of a network has after an exchange.

    Args:
        network: who hears whom.
        messages: ``[W, D]`` what the agents send.
        previous: ``[W, D]`` what they remember.
    """

    def __init__(self, network, messages, previous):
        self.network, self.messages, self.previous = network, messages, previous
        self._mixing = {kind: network.mixing(kind).toarray() for kind in ("metropolis", "equal")}
        self._poisoned = [
            sum(sender in network.poisoned for sender in network.closed_neighbourhood(agent))
            for agent in range(network.agents)
        ]

    def senders(self, agent):
        """The agent itself, then its neighbours."""
        return [agent, *self.network.neighbours(agent)]

    def spread(self, agent):
        """The largest distance between two inputs of an agent."""
        inputs = self.messages[self.senders(agent)].numpy()
        return np.linalg.norm(inputs[:, None] - inputs, axis=-1).max()

    def estimate(self, rule, agent):
        """How many of its inputs the agent takes for poisoned."""
        option = getattr(rule, "estimate", "exact")
        if str(option).startswith("up_to"):
            return int(rule.assumed(np.array(len(self.senders(agent)))))
        return {"exact": self._poisoned[agent], "max": max(self._poisoned)}.get(option, option)

    def at(self, rule, agent, senders=None):
        """``[D]`` the rule at one agent alone, its inputs in the order of the senders."""
        senders = senders or self.senders(agent)
        mixing = self._mixing[getattr(rule, "mixing", "metropolis")]
        known = self.previous[agent]
        return rule.at(
            self.messages[senders],
            mixing=mixing[agent, senders],
            estimate=self.estimate(rule, agent),
            senders=senders,
            remembered={"previous_output": known, "model_before_step": known},
        )
