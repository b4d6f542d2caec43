"""The plain loop with other algorithms than Algorithm 1, and with several rounds.

Every recursion is written out here agent by agent. Of the package it uses what the plain loop uses,
and who is silent or wakes, which are random choices.
"""

from dataclasses import dataclass, field

import numpy as np
from plain_loop import gradient
from plain_variants import VariantLoop

from bezoar._seeds import Purpose, generator


@dataclass
class AlgorithmLoop(VariantLoop):
    """One run; its problem says how many rounds there are.

    Attributes:
        outputs: ``[D]`` for each agent what its rule gave last.
    """

    outputs: list = field(default_factory=list)

    def __post_init__(self):
        super().__post_init__()
        self.outputs = self.vectors()

    def network(self, iteration):
        return self.run.network.at(iteration)

    def vectors(self):
        return [self.vector(model) for model in self.models]

    def everyone(self):
        return range(len(self.models))

    def agree(self, messages, before, iteration):
        """The rule at everyone, again and again; what a round gives is sent in the next."""
        output = before
        for _ in range(self.problem.rounds):
            messages = output = self.exchange(messages, before, output, self.network(iteration))
        return messages

    def step(self, iteration):
        before = self.vectors()
        honest = [self.vector(self.local_update(w, iteration)) for w in self.everyone()]
        self.models = [self.matrix(made) for made in self.agree(honest, before, iteration)]


@dataclass
class CombineThenAdaptLoop(AlgorithmLoop):
    """``x⁺ = Agg(x) − γ g(x)``."""

    def step(self, iteration):
        moves = [
            self.move(w, gradient(self.models[w], self.x[w], self.labels(w)), iteration)
            for w in self.everyone()
        ]
        self.outputs = self.agree(self.vectors(), self.outputs, iteration)
        self.models = [self.matrix(self.outputs[w]) - moves[w] for w in self.everyone()]


@dataclass
class GradientTrackingLoop(AlgorithmLoop):
    """``x⁺ = Agg(x − γ t)``, ``t⁺ = Agg(t) + g⁺ − g``, with ``t = g`` at first."""

    trackers: list = None
    gradients: list = None

    def step(self, iteration):
        found = [gradient(self.models[w], self.x[w], self.labels(w)) for w in self.everyone()]
        if self.trackers is None:
            self.trackers, before = found, [0 * self.vector(each) for each in found]
        else:
            before = self.agreed
            self.trackers = [
                self.matrix(before[w]) + found[w] - self.gradients[w] for w in self.everyone()
            ]
        self.gradients = found
        self.agreed = self.agree([self.vector(each) for each in self.trackers], before, iteration)
        honest = [
            self.vector(self.models[w] - self.move(w, self.trackers[w], iteration))
            for w in self.everyone()
        ]
        found = self.agree(honest, self.vectors(), iteration)
        self.models = [self.matrix(made) for made in found]


@dataclass
class GossipLoop(AlgorithmLoop):
    """Who wakes steps, sends to every neighbour, and aggregates what each of them sent last."""

    awake: int = 1
    held: list = None
    arrived: dict = field(default_factory=dict)

    def step(self, iteration):
        rng = generator(self.run.seed, Purpose.AWAKE, iteration=iteration)
        awake = sorted(rng.permutation(len(self.models))[: self.awake].tolist())
        before = self.vectors()
        self.held = self.held or list(before)
        for w in awake:
            self.held[w] = self.vector(self.local_update(w, iteration))
        network = self.network(iteration)
        for w in awake:
            for v in network.neighbours(w):
                self.arrived[w, v] = super().received(w, v, self.held, before)
        found = self.exchange(self.held, before, before, network)
        for w in awake:
            self.models[w] = self.matrix(found[w])

    def received(self, sender, receiver, honest, before):
        if sender == receiver:
            return honest[sender]
        return self.arrived.get((sender, receiver), np.zeros_like(before[0]))


LOOPS = {
    "adapt_then_combine": AlgorithmLoop,
    "combine_then_adapt": CombineThenAdaptLoop,
    "gradient_tracking": GradientTrackingLoop,
    "gossip": GossipLoop,
}
