"""The plain loop with momentum, memory, attacks of all kinds and networks that change.

Everything is written out here agent by agent, from the definitions: of the package it uses what
the plain loop uses, and the options of a run.
"""

from dataclasses import dataclass, field

import numpy as np
from aggregator_reference import RULES, closed_neighbourhoods, estimates, mixing_matrix
from plain_loop import Loop, design, gradient, logits

from bezoar._seeds import Purpose, generator


@dataclass
class VariantLoop(Loop):
    """One run whose optimiser, attack, rule and network may be any.

    Attributes:
        turns: the networks that are used in turn, or a function of the iteration; without any, it
            is the run's network throughout.
        momentum: ``[classes, features + 1]`` for each agent.
        iteration: which iteration comes next, counted from 1.
        true: ``[n]`` the true labels of each agent.
    """

    turns: object = None
    momentum: list = field(default_factory=list)
    iteration: int = 1
    true: list = field(default_factory=list)

    def __post_init__(self):
        super().__post_init__()
        dataset, partition = self.problem.dataset, self.problem.partition
        everyone = range(partition.agents)
        self.true = [dataset.train_labels[partition.samples(w)] for w in everyone]
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
        self.iteration = iteration + 1

    def exchange(self, honest, before, output, network):
        """What every agent's rule makes of what it receives.

        ``before`` is what everyone held before the local update, ``output`` what its rule gave
        last.
        """
        option = dict(self.run.aggregator.__dict__)
        mixing = mixing_matrix(network.whole, option.pop("mixing", "metropolis"))
        estimate = option.pop("estimate", "exact")
        if "strength" in option:
            option["strength"] /= np.sqrt(self.iteration)
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

    def attacks(self):
        """Whether poisoned agents attack in the iteration that comes next."""
        attack = self.run.attack
        return attack.from_iteration <= self.iteration <= (attack.until or self.iteration)

    def labels(self, w):
        """The labels that agent ``w`` trains with in the iteration that comes next."""
        if not self.attacks():
            return self.true[w]
        if not self.run.attack.dynamic:
            return self.y[w]
        scores = logits(self.judge(w), self.x[w])
        low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
        least = (scores <= low + 1e-5 * (high - low)).argmax(1)
        return np.where(self.touched[w], least, self.y[w])

    def samples(self, w):
        """What agent ``w`` trains on in the iteration that comes next."""
        attack, dataset = self.run.attack, self.problem.dataset
        if w not in self.run.network.poisoned or not attack.triggers or not self.attacks():
            return self.x[w]
        touched = attack.touched(self.true[w], generator(self.run.seed, Purpose.ATTACK, w))
        images = dataset.train[self.problem.partition.samples(w)]
        return design(stamped(images, attack.size, touched))

    def metrics(self):
        found, attack = super().metrics(), self.run.attack
        if attack.triggers:
            regular, dataset = self.run.network.regular, self.problem.dataset
            average = sum(self.models[w] for w in regular) / len(regular)
            others = dataset.test[dataset.test_labels != attack.target]
            scores = logits(average, design(stamped(others, attack.size)))
            found["backdoor_success"] = np.mean(scores.argmax(1) == attack.target)
        return found

    def judge(self, w):
        """What gives the scores of which agent ``w`` takes the lowest for a label."""
        attack, regular = self.run.attack, self.run.network.regular
        average = sum(self.models[v] for v in regular) / len(regular)
        if attack.name.startswith("worst_labels") and attack.knows == "own":
            return -gradient(self.models[w], self.x[w], self.true[w])
        if attack.name.startswith("worst_labels"):
            gradients = [gradient(average, self.x[v], self.true[v]) for v in regular]
            return -sum(gradients) / len(regular)
        return average if attack.judge == "average" else self.models[w]

    def local_update(self, w, iteration):
        """What agent ``w`` holds after its local update."""
        found = gradient(self.models[w], self.samples(w), self.labels(w))
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
        lies = attack.name.endswith("sign_flip") and self.attacks()
        if not poisoned or sender == receiver or not lies:
            return honest[sender]
        update = honest[sender if attack.broadcast else receiver] - before[sender]
        lie, share = before[sender] - attack.scale * update, getattr(attack, "share", 1)
        return (1 - share) * honest[sender] + share * lie

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


def stamped(images, size, which=slice(None)):
    """Images of 28 × 28 pixels, some with a white square in their lower right corner."""
    pixels = np.array(images).reshape(len(images), 28, 28)
    corner = pixels[which]
    corner[:, 28 - size :, 28 - size :] = 255
    pixels[which] = corner
    return pixels


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
