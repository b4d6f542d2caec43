"""Networks: what they tell of a graph, and which graphs they refuse."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezoar import BezoarError, Network, networks


@st.composite
def graphs(draw):
    seed = draw(st.integers(0, 2**32 - 1))
    agents = draw(st.integers(1, 15))
    graph = nx.gnp_random_graph(agents, draw(st.sampled_from([0.0, 0.2, 0.6])), seed=seed)
    order = np.random.default_rng(seed).permutation(agents).tolist()
    graph.add_edges_from(pairwise(order))
    poisoned = draw(st.sets(st.integers(0, agents - 1), max_size=agents - 1))
    return graph, poisoned


@settings(deadline=None, derandomize=True, max_examples=60)
@given(drawn=graphs())
def test_everything_it_tells_against_loops(drawn):
    graph, poisoned = drawn
    network = Network(graph, poisoned)
    agents = range(len(graph))
    assert network.agents == len(graph)
    assert network.poisoned == tuple(sorted(poisoned))
    assert network.regular == tuple(v for v in agents if v not in poisoned)
    assert network.poisoned_mask.tolist() == [v in poisoned for v in agents]
    assert network.edges == tuple(sorted(tuple(sorted(edge)) for edge in graph.edges))
    for agent in agents:
        closed = sorted({agent, *graph.neighbors(agent)})
        assert network.neighbours(agent) == tuple(sorted(graph.neighbors(agent)))
        assert network.closed_neighbourhood(agent) == tuple(closed)
        assert network.degrees[agent] == graph.degree[agent]
        assert network.poisoned_inputs[agent] == sum(v in poisoned for v in closed)
    rest = graph.subgraph(network.regular)
    assert network.regular_is_connected == nx.is_connected(rest)
    assert nx.utils.graphs_equal(nx.Graph(network.graph.edges), nx.Graph(graph.edges))
    assert dict(network.graph.nodes(data="poisoned")) == {v: v in poisoned for v in agents}


def test_changing_the_graph_later_changes_nothing():
    graph = nx.path_graph(4)
    poisoned = {1}
    network = Network(graph, poisoned)
    graph.add_edge(0, 3)
    graph.remove_edge(1, 2)
    poisoned.add(2)
    assert network.edges == ((0, 1), (1, 2), (2, 3))
    assert network.poisoned == (1,)
    with pytest.raises(nx.NetworkXError):
        network.graph.add_edge(0, 2)


def test_other_agents_poisoned():
    network = networks.fan(6)
    other = network.with_poisoned([0, 3, 3])
    assert other.poisoned == (0, 3)
    assert other.regular == (1, 2, 4, 5)
    assert other.edges == network.edges
    assert other.name == network.name
    assert network.poisoned == (5,)
    assert other.poisoned_inputs.tolist() != network.poisoned_inputs.tolist()
    with pytest.raises(BezoarError, match="poisoned: agent 6"):
        network.with_poisoned([6])


def test_numpy_agents_and_any_node_order_are_fine():
    graph = nx.Graph([(np.int64(2), np.int64(0)), (np.int64(0), np.int64(1))])
    network = Network(graph, np.array([2]))
    assert network.edges == ((0, 1), (0, 2))
    assert network.poisoned == (2,)
    assert all(type(agent) is int for agent in (*network.poisoned, *network.regular))


def test_repr_says_what_it_is():
    assert repr(networks.ring(5)) == "Network(name='ring', agents=5, edges=5, poisoned=[4])"
    assert "… 40 in all" in repr(networks.complete(50, 40))
    assert Network(nx.path_graph(2)).name == "custom"


def looped():
    graph = nx.path_graph(3)
    graph.add_edge(1, 1)
    return graph


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (nx.Graph(), "graph: it has no agents"),
        (nx.empty_graph(2), "graph: it falls into 2 unconnected pieces"),
        (nx.disjoint_union(nx.path_graph(2), nx.path_graph(3)), "2 unconnected pieces"),
        (nx.path_graph([1, 2, 3]), "labelled 0 … 2, found 3"),
        (nx.path_graph([0, 1, 3]), "labelled 0 … 2, found 3"),
        (nx.path_graph([-1, 0, 1]), "labelled 0 … 2, found -1"),
        (nx.path_graph(["a", "b"]), "labelled 0 … 1, found '"),
        (nx.path_graph([0.0, 1.0]), r"labelled 0 … 1, found [01]\.0"),
        (nx.path_graph([False, True]), "labelled 0 … 1, found (False|True)"),
        (looped(), "graph: agent 1 is linked to itself"),
        (nx.path_graph(3, create_using=nx.DiGraph), "undirected networkx Graph, found DiGraph"),
        (nx.path_graph(3, create_using=nx.MultiGraph), "found MultiGraph"),
        ([(0, 1)], "undirected networkx Graph, found list"),
        (None, "found NoneType"),
    ],
)
def test_refused_graphs(graph, told):
    with pytest.raises(BezoarError, match=told):
        Network(graph)


@pytest.mark.parametrize(
    ("poisoned", "told"),
    [
        ([3], "poisoned: agent 3 is not in the network; allowed: 0 … 2"),
        ([-1], "poisoned: agent -1"),
        ([1.0], r"poisoned: agents are integers, found 1\.0"),
        (["1"], "poisoned: agents are integers, found '1'"),
        ([True], "poisoned: agents are integers, found True"),
        ([None], "poisoned: agents are integers, found None"),
        ("1", "poisoned: .*found '1'"),
        (1, "poisoned: expected a collection of agents .*found 1"),
        (None, "poisoned: expected a collection"),
        ([0, 1, 2], "poisoned: all 3 agents are poisoned; one must remain regular"),
    ],
)
def test_refused_poisoned_agents(poisoned, told):
    with pytest.raises(BezoarError, match=told):
        Network(nx.path_graph(3), poisoned)


@pytest.mark.parametrize("agent", [-1, 4, 100])
def test_neighbours_of_nobody_are_refused(agent):
    network = networks.ring(4)
    with pytest.raises(BezoarError, match=rf"agent: {agent} is not in the network; allowed: 0 … 3"):
        network.neighbours(agent)
    with pytest.raises(BezoarError, match=f"agent: {agent}"):
        network.closed_neighbourhood(agent)
