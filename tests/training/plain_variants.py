"""The plain loop with momentum, memory, false messages and networks that change.

Everything is written out here agent by agent, from the definitions: of the package it uses what
the plain loop uses, and the options of a run.
"""

from dataclasses import dataclass, field

import numpy as np
from aggregator_reference import RULES, closed_neighbourhoods, estimates, mixing_matrix
from plain_loop import Loop, gradient


@dataclass
class VariantLoop(Loop):
    """One run whose optimiser, attack, rule and network may be any.

    Attributes:
        turns: the networks that are used in turn, or a function of the iteration; without any, it
            is the run's network throughout.
        momentum: ``[classes, features + 1]`` for each agent.
    """

    turns: object = None
    momentum: list = field(default_factory=list)

    def __post_init__(self):
        super().__post_init__()
        self.momentum = [np.zeros_like(model) for model in self.models]

    def network(self, iteration):
        """Who hears whom in an iteration, counted from 1."""
        if self.turns is None:
            return self.run.network
        if callable(self.turns):
            return self.turns(iteration)
        return self.turns[(iteration - 1) % len(self.turns)]

    def step(self, iteration):
        before = [self.vector(model) for model in self.models]
        honest = [self.vector(self.local_update(w, iteration)) for w in range(len(before))]
        found = self.exchange(honest, before, before, self.network(iteration))
        self.models = [self.matrix(model) for model in found]

    def exchange(self, honest, before, output, network):
        """What every agent's rule makes of what it receives.

        ``before`` is what everyone held before the local update, ``output`` what its rule gave
        last.
        """
        option = dict(self.run.aggregator.__dict__)
        mixing = mixing_matrix(network.whole, option.pop("mixing", "metropolis"))
        estimate = option.pop("estimate", "exact")
        self.weights = np.zeros((len(before), len(before)))
        found = []
        for w, senders in enumerate(closed_neighbourhoods(network)):
            inputs = {v: self.received(v, w, honest, before) for v in senders}
            shares = {v: mixing[w, v] for v in senders}
            shares[w] += sum(mixing[w]) - sum(shares.values())  # of neighbours that are silent
            q = estimates(network if estimate == "exact" else network.whole, estimate)[w]
            while network is not network.whole and self.run.aggregator.inputs_needed(q) > len(
                inputs
            ):
                q -= 1
            made, given = self.aggregate(w, inputs, shares, q, output[w], option)
            found.append(made)
            self.weights[w] = (
                np.nan if given is None else [given.get(v, 0) for v in range(len(before))]
            )
        return found

    def local_update(self, w, iteration):
        """What agent ``w`` holds after its local update."""
        found = gradient(self.models[w], self.x[w], self.labels(w))
        return self.models[w] - self.move(w, found, iteration)

    def move(self, w, found, iteration):
        """What agent ``w`` subtracts from its model because of a gradient."""
        optimizer, direction = self.run.optimizer, found + self.run.weight_decay * self.models[w]
        if optimizer.name != "plain":
            fresh = {"momentum": 1 - optimizer.beta, "heavy_ball": 1}[optimizer.name]
            self.momentum[w] = optimizer.beta * self.momentum[w] + fresh * direction
            direction = self.momentum[w]
        return self.run.schedule(iteration, self.problem.iterations) * direction

    def received(self, sender, receiver, honest, before):
        """The message that goes from one agent to another; to itself it tells the truth."""
        attack = self.run.attack
        poisoned = sender in self.run.network.poisoned
        if not poisoned or sender == receiver or attack.name != "sign_flip":
            return honest[sender]
        update = honest[sender if attack.broadcast else receiver] - before[sender]
        return before[sender] - attack.scale * update

    def aggregate(self, w, inputs, mixing, q, previous, option):
        """The next model of agent ``w`` and, for rules by weights, the weight of each input."""
        name = self.run.aggregator.name
        if name == "centered_clipping" and option["memory"]:
            return clip_around(previous, inputs, option["threshold"], option["steps"])
        option = {each: value for each, value in option.items() if each != "memory"}
        if name == "lfighter":
            option = {"head": (self.classes, self.x[0].shape[1] - 1)}
        if name == "rfa":
            option = {}
        return RULES[name](w, inputs, mixing, q, **option)

    def consensus_error(self):
        """The largest squared distance of a regular agent's model to their average."""
        regular = [self.models[w] for w in self.run.network.regular]
        average = sum(regular) / len(regular)
        return max(((model - average) ** 2).sum() for model in regular)

    def poison_share(self):
        """The weight that regular agents gave to poisoned ones; NaN where there are no weights."""
        poisoned = list(self.run.network.poisoned)
        return np.mean([self.weights[w, poisoned].sum() for w in self.run.network.regular])


def clip_around(start, inputs, threshold, steps):
    """Centered clipping of inputs around a point that is not one of them."""
    centre, weights = start, dict.fromkeys(inputs, 0.0)
    for _ in range(steps):
        moves = {}
        for v, message in inputs.items():
            length = np.linalg.norm(message - centre)
            moves[v] = (1.0 if length <= threshold else threshold / length) / len(inputs)
        rest = 1 - sum(moves.values())
        centre = centre + sum(move * (inputs[v] - centre) for v, move in moves.items())
        weights = {v: rest * weights[v] + moves[v] for v in inputs}
    return centre, weights
