from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from theory_reference import some_networks

from bezoar import BezoarError, Network, networks, theory


@given(some_networks())
def test_rates_are_the_definitions(network):
    rates = theory.contamination(network)
    local = {
        w: Fraction(
            sum(v in network.poisoned for v in network.closed_neighbourhood(w)),
            len(network.closed_neighbourhood(w)),
        )
        for w in network.regular
    }
    assert rates.delta == pytest.approx(1 - len(network.regular) / network.agents)
    assert rates.delta_max == pytest.approx(float(max(local.values())))
    assert local[rates.agent] == max(local.values())
    assert rates.agent == min(w for w in local if local[w] == max(local.values()))


@pytest.mark.parametrize(
    ("network", "delta_max"),
    [(networks.two_castle(), 1 / 9), (networks.line(), 1 / 3), (networks.fan(), 1 / 3)],
)
def test_the_papers_networks(network, delta_max):
    rates = theory.contamination(network)
    assert rates.delta == pytest.approx(0.1)
    assert rates.delta_max == pytest.approx(delta_max)
    robust, mean = theory.learning_error_orders(rates, heterogeneity=2.0)
    assert (robust.aggregator, mean.aggregator) == ("RAgg", "WeiMean")
    assert robust.value == pytest.approx(4 * delta_max**2)
    assert mean.value == pytest.approx(0.04)
    with pytest.raises(BezoarError, match="heterogeneity: expected a number of at least 0"):
        theory.learning_error_orders(rates, heterogeneity=-1.0)


def test_nobody_poisoned():
    rates = theory.contamination(networks.ring(agents=6, poisoned=0))
    assert (rates.delta, rates.delta_max) == (0, 0)


@given(some_networks())
def test_relabelling_agents_changes_nothing(network):
    order = np.random.default_rng(0).permutation(network.agents)
    renamed = nx.relabel_nodes(network.graph, {old: int(new) for old, new in enumerate(order)})
    other = theory.contamination(
        Network(nx.Graph(renamed), [int(order[w]) for w in network.poisoned])
    )
    rates = theory.contamination(network)
    assert (other.delta, other.delta_max) == (rates.delta, rates.delta_max)
