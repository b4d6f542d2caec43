"""Algorithm 1 as a plain loop over agents in float64: the judge of the engine.

It shares with the package only data structures and the random choices of attacks, not how
anything is computed.
"""

from dataclasses import dataclass, field

import numpy as np
from aggregator_reference import aggregate, closed_neighbourhoods

from bezoar._seeds import Purpose, generator


def design(samples):
    samples = np.asarray(samples).reshape(len(samples), -1)
    values = samples / 127.5 - 1 if samples.dtype == np.uint8 else samples.astype(np.float64)
    return np.hstack([values, np.ones((len(values), 1))])


def logits(model, x):
    return x @ model.T


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def cross_entropy(model, x, y):
    z = logits(model, x)
    top = z.max(1)
    return np.mean(top + np.log(np.exp(z - top[:, None]).sum(1)) - z[np.arange(len(y)), y])


def gradient(model, x, y):
    p = softmax(logits(model, x))
    p[np.arange(len(y)), y] -= 1
    return p.T @ x / len(y)


@dataclass
class Loop:
    """One run, a matrix ``[classes, features + 1]`` an agent."""

    problem: object
    run: object
    models: list = field(default_factory=list)
    weights: object = None

    def __post_init__(self):
        dataset, partition = self.problem.dataset, self.problem.partition
        self.classes = dataset.classes
        self.x = [design(dataset.train[partition.samples(w)]) for w in range(partition.agents)]
        self.y, self.touched = [], []
        for w in range(partition.agents):
            labels = dataset.train_labels[partition.samples(w)]
            touched = np.zeros(len(labels), dtype=bool)
            if w in self.run.network.poisoned and hasattr(self.run.attack, "touched"):
                rng = generator(self.run.seed, Purpose.ATTACK, w)
                touched = self.run.attack.touched(labels, rng)
                corrupted = self.run.attack.corrupt(labels, self.classes, rng)
                labels = np.where(touched, corrupted, labels)
            self.y.append(labels)
            self.touched.append(touched & self.run.attack.dynamic)
        self.test = design(dataset.test), dataset.test_labels
        shape = (dataset.classes, dataset.features + 1)
        self.models = [np.zeros(shape) for _ in range(partition.agents)]

    def labels(self, w):
        """The labels that agent ``w`` trains with now."""
        scores = logits(self.models[w], self.x[w])
        low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
        least = (scores <= low + 1e-5 * (high - low)).argmax(1)
        return np.where(self.touched[w], least, self.y[w])

    def samples(self, w):
        """What agent ``w`` trains on now."""
        return self.x[w]

    def vector(self, model):
        return np.concatenate([model[:, :-1].ravel(), model[:, -1]])

    def matrix(self, vector):
        features = self.x[0].shape[1] - 1
        weights = vector[: self.classes * features].reshape(self.classes, features)
        return np.column_stack([weights, vector[self.classes * features :]])

    def step(self, iteration):
        step = self.run.schedule(iteration, self.problem.iterations)
        messages = []
        for w, model in enumerate(self.models):
            change = gradient(model, self.x[w], self.labels(w)) + self.run.weight_decay * model
            messages.append(self.vector(model - step * change))
        options = dict(self.run.aggregator.__dict__)
        assert not options.pop("memory", False), "this loop has no memory"
        if self.run.aggregator.name == "lfighter":
            options = {"head": (self.classes, self.x[0].shape[1] - 1)}
        if "strength" in options:
            options["strength"] /= np.sqrt(iteration)
        if self.run.aggregator.name == "rfa":
            options = {}
        vectors, self.weights = aggregate(
            self.run.aggregator.name, messages, self.run.network, **options
        )
        self.models = [self.matrix(vector) for vector in vectors]

    def metrics(self):
        regular, poisoned = self.run.network.regular, self.run.network.poisoned
        average = sum(self.models[w] for w in regular) / len(regular)
        x, y = self.test

        def accuracy(model):
            return np.mean(logits(model, x).argmax(1) == y)

        own = [accuracy(self.models[w]) for w in regular]
        everyone = range(len(self.x))
        at_average = [gradient(average, self.samples(w), self.labels(w)) for w in everyone]
        whole = sum(at_average[w] for w in regular) / len(regular)
        apart = [np.linalg.norm(g - whole) for g in at_average]
        share = np.nan
        if self.weights is not None:
            share = np.mean([sum(self.weights[w][v] for v in poisoned) for w in regular])
        return {
            "accuracy": accuracy(average),
            "accuracy_mean": np.mean(own),
            "accuracy_worst": min(own),
            "accuracy_all": accuracy(sum(self.models) / len(self.models)),
            "backdoor_success": np.nan,
            "test_loss": cross_entropy(average, x, y),
            "training_loss": np.mean(
                [cross_entropy(average, self.x[w], self.y[w]) for w in regular]
            ),
            "consensus_error": max(((self.models[w] - average) ** 2).sum() for w in regular),
            "variance_norm": np.linalg.norm(np.var([self.models[w] for w in regular], axis=0)),
            "gradient_norm": (whole**2).sum(),
            "heterogeneity": max(apart[w] for w in regular),
            "disturbance": max((apart[w] for w in poisoned), default=np.nan),
            "poison_share": share,
        }


__all__ = ["Loop", "closed_neighbourhoods"]
