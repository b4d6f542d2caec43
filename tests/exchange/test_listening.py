"""Who listened to whom: the weights behind every model."""

import networkx as nx
import numpy as np
import pytest
import torch

from bezoar import Network, aggregators, networks
from bezoar.exchange import Exchange, Sent, Tuning, listening_matrix

NETWORKS = {
    "fan": networks.fan(),
    "star": networks.star(7, {2}),
    "ring": networks.ring(12, {3}),
    "random": Network(nx.gnp_random_graph(12, 0.6, seed=1), poisoned={0, 7}),
}
BY_WEIGHTS = ("weighted_mean", "mean", "faba", "ios", "krum", "rfa", "clipped_gossip", "local")
WAYS = {"dense": Tuning(dense_advantage=1e9), "sparse": Tuning(dense_advantage=0)}


def told(rule, network, tuning, messages):
    exchange = Exchange([rule] * len(messages), [network] * len(messages), tuning=tuning)
    models, weights = exchange(messages, tell=True)
    return models, [listening_matrix(network, each) for each in weights], exchange, weights


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", NETWORKS)
@pytest.mark.parametrize("name", BY_WEIGHTS)
def test_models_are_the_weights_times_the_messages(name, where, way):
    network, rule = NETWORKS[where], aggregators.create(name)
    if "estimate" in rule.__dataclass_fields__:
        rule = aggregators.create(name, estimate="up_to_1")
    messages = torch.randn(3, network.agents, 20, dtype=torch.float64)
    models, matrices, exchange, weights = told(rule, network, WAYS[way], messages)
    allowed = network.adjacency.toarray() + np.eye(network.agents) > 0
    for run, matrix in enumerate(matrices):
        np.testing.assert_allclose(matrix @ messages[run].numpy(), models[run], atol=1e-12)
        assert not matrix.toarray()[~allowed].any()
        poison = matrix.toarray()[:, list(network.poisoned)].sum(1)
        np.testing.assert_allclose(exchange.links.poison_shares(weights)[run], poison)


def test_what_a_rule_remembers_counts_as_its_own():
    network = NETWORKS["fan"]
    rule = aggregators.create("centered_clipping", memory=True, threshold=0.1)
    assert rule.remembers()
    messages = torch.randn(1, network.agents, 20)
    known = {name: torch.zeros_like(messages) for name in aggregators.REMEMBERED}
    for tuning in WAYS.values():
        exchange = Exchange([rule], [network], tuning=tuning)
        _, weights = exchange(Sent(messages, None, known), tell=True)
        matrix = listening_matrix(network, weights[0])
        np.testing.assert_allclose(matrix.sum(1), 1)
        assert matrix.diagonal().min() > 0.5


@pytest.mark.parametrize("name", ["median", "trimmed_mean"])
@pytest.mark.parametrize("where", NETWORKS)
def test_by_coordinates_kept_inputs_share_the_weight(name, where):
    network = NETWORKS[where]
    options = {"estimate": "up_to_1"} if name == "trimmed_mean" else {}
    rule = aggregators.create(name, **options)
    messages = torch.randn(1, network.agents, 30, dtype=torch.float64)
    _, [matrix], _, _ = told(rule, network, Tuning(), messages)
    estimates = rule.estimates(network)
    for agent in range(network.agents):
        inputs = [agent, *network.adjacency[[agent]].indices]
        values = messages[0, inputs].numpy()
        size = len(inputs)
        ranks = rule.rank_weights(size, torch.tensor(estimates[agent])).numpy()
        expected = np.zeros(size)
        for column in values.T:
            order = column.argsort()
            kept = order[ranks > 0]
            expected[kept] += 1 / len(kept) / values.shape[1]
        np.testing.assert_allclose(matrix.toarray()[agent, inputs], expected)


def test_runs_on_different_networks_together():
    """Of unequal numbers of links, in one exchange."""
    pair = [networks.fan(), networks.line(10)]
    messages = torch.randn(2, 10, 8, dtype=torch.float64)
    for rule in (aggregators.create("mean"), aggregators.create("median")):
        exchange = Exchange([rule, rule], pair)
        models, weights = exchange(messages, tell=True)
        for run, network in enumerate(pair):
            matrix = listening_matrix(network, weights[run])
            np.testing.assert_allclose(matrix.sum(1), 1)
            if rule.name == "mean":
                np.testing.assert_allclose(matrix @ messages[run].numpy(), models[run])
