"""The network of Theorem 3, for every feasible number of agents."""

from itertools import combinations

import networkx as nx
import pytest

from bezoar import networks

FEASIBLE = [
    (regular, poisoned)
    for regular in range(4, 13)
    for poisoned in range(4, regular - regular % 2 + 1)
]


def layout(regular, poisoned):
    network = networks.lower_bound(regular, poisoned)
    assert network.agents == regular + poisoned
    assert network.poisoned == tuple(range(regular, regular + poisoned))
    poison = {
        agent: {v for v in network.neighbours(agent) if v >= regular} for agent in range(regular)
    }
    for a, b in combinations(range(regular), 2):
        assert (a, b) in network.edges
    for a, b in combinations(range(regular, regular + poisoned), 2):
        assert (a, b) not in network.edges
    return network, poison


@pytest.mark.parametrize(("regular", "poisoned"), FEASIBLE)
def test_conditions_of_the_theorem(regular, poisoned):
    network, poison = layout(regular, poisoned)
    # (a) everybody regular has two poisoned neighbours
    assert {len(agents) for agents in poison.values()} == {2}
    # (b) two regular agents share none: those the docstring names
    second = len(network.neighbours(regular))
    assert not poison[0] & poison[second]
    # (c) every poisoned agent has at least two regular neighbours: most of its inputs
    assert all(len(network.neighbours(agent)) >= 2 for agent in network.poisoned)


@pytest.mark.parametrize(("regular", "poisoned"), FEASIBLE)
def test_poisoned_agents_hold_blocks_of_consecutive_agents_in_two_layers(regular, poisoned):
    network, _ = layout(regular, poisoned)
    for layer in (0, 1):
        blocks = [set(network.neighbours(v)) for v in range(regular + layer, network.agents, 2)]
        assert len(blocks) >= 2
        assert sorted(v for block in blocks for v in block) == list(range(regular))
        for block in blocks:
            ends = [v for v in block if (v + 1) % regular not in block]
            assert len(ends) == 1


def test_four_and_four_is_figure_9():
    network = networks.lower_bound(4, 4)
    without_clique = nx.Graph(network.graph)
    without_clique.remove_edges_from(combinations(range(4), 2))
    assert nx.is_isomorphic(without_clique, nx.cycle_graph(8))
    assert [network.neighbours(v) for v in range(4, 8)] == [(0, 1), (1, 2), (2, 3), (0, 3)]
    # The agents with the other label in the second instance: 1 and 3, counted from one.
    assert not set(network.neighbours(0)) & set(network.neighbours(2)) & set(network.poisoned)


@pytest.mark.parametrize(("regular", "poisoned"), [(4, 5), (4, 9), (5, 5), (5, 7), (7, 8), (6, 7)])
def test_further_poisoned_agents_hear_everybody_regular(regular, poisoned):
    network, _ = layout(regular, poisoned)
    dealt = regular - regular % 2
    core = networks.lower_bound(regular, dealt)
    for agent in range(regular, regular + dealt):
        assert network.neighbours(agent) == core.neighbours(agent)
    for agent in range(regular + dealt, network.agents):
        assert network.neighbours(agent) == tuple(range(regular))


@pytest.mark.parametrize(("regular", "poisoned"), [(2, 1), (2, 6), (3, 3), (3, 5), (4, 3), (9, 1)])
def test_too_few_for_blocks_everybody_hears_everybody(regular, poisoned):
    network, _ = layout(regular, poisoned)
    for agent in network.poisoned:
        assert network.neighbours(agent) == tuple(range(regular))
