"""What the aggregators' tests share: rules with options, random networks and messages."""

from dataclasses import dataclass

import aggregator_reference as reference
import networkx as nx
import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch.nn.functional import pad

from bezoar import Network, aggregators
from bezoar.aggregators import WeightedAggregator
from bezoar.exchange import Exchange, Tuning

HEAD = (3, 2)

#: Inherited tests run in several classes, which is what ``differing_executors`` warns of.
checked = settings(
    deadline=None,
    derandomize=True,
    max_examples=8,
    suppress_health_check=[HealthCheck.differing_executors],
)


class Case:
    """A rule's name and options, printed as it would be created."""

    def __init__(self, name, **options):
        self.name, self.options = name, options

    def __repr__(self):
        return "-".join([self.name, *(f"{k}={v}" for k, v in self.options.items())])

    def rule(self, scale=1.0):
        """The rule; its threshold or strength, if any, is in units of the messages."""
        return aggregators.create(self.name, **self._scaled(scale))

    def fit(self, network):
        """``network`` with so many fewer poisoned agents that the rule is possible."""
        estimate = self.options.get("estimate", "exact")
        while not reference.is_possible(self.name, network, estimate):
            assert network.poisoned, f"{self} is impossible on {network} whoever is poisoned"
            network = network.with_poisoned(network.poisoned[:-1])
        return network

    def possible_on(self, *networks):
        """Those of the networks on which the rule is possible."""
        estimate = self.options.get("estimate", "exact")
        found = [net for net in networks if reference.is_possible(self.name, net, estimate)]
        assert found
        return found

    def loop(self, messages, network, scale=1.0, **more):
        """The plain loop's models and weights, for messages ``[W, D]``."""
        return reference.aggregate(self.name, messages, network, **self._scaled(scale), **more)

    def _scaled(self, scale):
        options = dict(self.options)
        for name in ("threshold", "strength"):
            if isinstance(options.get(name), float):
                options[name] *= abs(scale)
        return options

    @property
    def tolerance(self):
        """Of the messages' scale.

        The geometric median is the limit of an iteration, which is slow where the median almost
        leaves an input.
        """
        return 1e-4 if self.name == "rfa" else 1e-9


@dataclass(frozen=True)
class Situation:
    """A network and messages ``[..., W, D]`` of size about one."""

    network: Network
    messages: np.ndarray


def random_network(rng, agents, density=0.4, poisoned=0):
    """A random tree and some more edges, with random agents poisoned."""
    graph = nx.Graph()
    graph.add_nodes_from(range(agents))
    order = rng.permutation(agents)
    for place in range(1, agents):
        graph.add_edge(int(order[place]), int(order[rng.integers(place)]))
    for a in range(agents):
        for b in range(a):
            if rng.random() < density:
                graph.add_edge(a, b)
    return Network(graph, rng.choice(agents, size=poisoned, replace=False).tolist())


def random_messages(rng, network, batch=(), length=8):
    """Normal messages; a shift of the poisoned ones gives the rules something to find."""
    messages = rng.normal(size=(*batch, network.agents, length))
    messages[..., list(network.poisoned), :] += rng.normal(size=length) * 3
    return messages


@st.composite
def situations(draw, smallest=2, batches=((), (1,), (3,), (2, 2))):
    """Random connected networks of up to 14 agents, and messages with leading dimensions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    agents = draw(st.integers(smallest, 14))
    density = draw(st.sampled_from([0.0, 0.2, 0.5, 0.9]))
    network = random_network(rng, agents, density, draw(st.integers(0, agents // 2)))
    batch = draw(st.sampled_from(batches))
    return Situation(network, random_messages(rng, network, batch, draw(st.integers(6, 9))))


@st.composite
def roomy_situations(draw):
    """Neighbourhoods of five with one poisoned agent, where no rule meets a tie.

    Elsewhere ties are built in: of two inputs both are equally far from their mean, and two
    clusters of two often have the same value. They go to the lowest agent, which no relabelling
    respects.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    agents = draw(st.integers(5, 14))
    graph = nx.circulant_graph(agents, [1, 2])
    order = rng.permutation(agents).tolist()
    graph = nx.relabel_nodes(graph, dict(enumerate(order)))
    network = Network(graph, [int(rng.integers(agents))])
    return Situation(network, random_messages(rng, network))


class Spy(WeightedAggregator):
    """A rule by weights that keeps what it was shown and what it answered."""

    def __init__(self, rule):
        self.inner = rule
        self.reads = rule.reads
        self.check, self.wiring, self.output_layer = rule.check, rule.wiring, rule.output_layer
        self.estimates, self.remembers = rule.estimates, rule.remembers
        self.auxiliary = rule.auxiliary
        self.seen = []

    def weights(self, neighbourhood):
        weights = self.inner.weights(neighbourhood)
        left_out = neighbourhood.mask.shape[-1] - weights.shape[-1]
        self.seen.append((neighbourhood, pad(weights, (0, left_out))))
        return weights


#: Each way the same exchange can be computed.
PATHS = {
    "dense": Tuning(dense_advantage=10**9),
    "dense in turns": Tuning(dense_advantage=10**9, matrix_bytes=1),
    "gathered": Tuning(dense_advantage=0),
    "chunked": Tuning(dense_advantage=0, piece_bytes=500, block_bytes=500, compiled=False),
}

#: The two that share no code beside the rule's weights, for tests of many cases.
TWO_PATHS = {name: PATHS[name] for name in ("dense", "chunked")}


def exchanged(rule, messages, networks, tuning=None, share=False, **options):
    """``rule`` on messages ``[..., W, D]`` of one network, or of one a run, in one of the ways."""
    flat = messages.reshape(-1, *messages.shape[-2:])
    nets = list(networks) if isinstance(networks, list | tuple) else [networks] * len(flat)
    one = Exchange([rule] * len(nets), nets, tuning=tuning or Tuning(), **options)
    models, weights = one(flat, share)
    shares = None if weights is None else one.links.poison_shares(weights)
    return models.view(messages.shape), None if shares is None else shares.view(messages.shape[:-1])


def apply(rule, messages, network, dtype=torch.float64, tuning=None):
    """``rule`` on a numpy array, as a numpy array of the given precision."""
    return exchanged(rule, torch.as_tensor(messages, dtype=dtype), network, tuning)[0].numpy()


def assert_close(found, expected, tolerance, message=""):
    """Equal up to ``tolerance``, not-a-numbers and infinities in the same places."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=message)
