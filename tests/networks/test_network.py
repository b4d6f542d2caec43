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


def weighted(*weights):
    graph = nx.path_graph(len(weights) + 1)
    nx.set_edge_attributes(graph, dict(zip(graph.edges, weights, strict=True)), "weight")
    return graph


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (nx.Graph(), "graph: it has no agents"),
        (nx.empty_graph(2), "graph: it falls into 2 unconnected pieces"),
        (nx.Graph(["xy", "ab", "bc"]), r"2 unconnected pieces: \(a, b, c\) and \(x, y\)"),
        (nx.empty_graph(200), r"200 unconnected pieces: \(0\) and .* and \(3\) and 196 more\."),
        (
            nx.disjoint_union(nx.empty_graph(150), nx.path_graph(2)),
            r"pieces: \(150, 151\) and \(0\)",
        ),
        (nx.path_graph(["a", "b ", "b"]), "graph: 2 agents are called 'b'"),
        (nx.path_graph([1, "1"]), "graph: 2 agents are called '1'"),
        (nx.path_graph(["a", " "]), "a readable name for every agent, found ''"),
        (nx.path_graph(["a", "\x1b[31mb"]), r"a readable name for every agent, found '\\x1b"),
        (looped(), r"it has 1 link of an agent to itself \(1\)"),
        (nx.path_graph(3, create_using=nx.DiGraph), r"2 one-way links \(0 → 1\)"),
        (nx.MultiGraph([("a", "b"), ("b", "a")]), r"1 repeated link \(a – b\).*symmetric=true"),
        (weighted(0.5, 2), r"weights from 0\.5 to 2 \(1 – 2\)"),
        (weighted(1, "heavy"), "a number as the weight of 1 – 2, found 'heavy'"),
        (weighted(1, float("nan")), "a finite number as the weight of 1 – 2, found nan"),
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
        ([1.0], r"poisoned: agents are integers or names, found 1\.0"),
        (["3"], "poisoned: agent 3 is not in the network; allowed: 0 … 2"),
        ([True], "poisoned: agents are integers or names, found True"),
        ([None], "poisoned: agents are integers or names, found None"),
        ([[1]], "poisoned: agents are integers or names, found \\[1\\]"),
        ("1", "poisoned: .*found '1'"),
        (1, "poisoned: expected a collection of agents .*found 1"),
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


def test_agents_keep_their_names_in_the_graphs_order():
    network = Network(nx.path_graph(["c", "a", "b"]), poisoned=["a"])
    assert network.names == ("c", "a", "b")
    assert network.edges == ((0, 1), (1, 2))
    assert network.poisoned == (1,)
    assert network.named([2, 0]) == ["b", "c"]
    assert repr(network) == "Network(name='custom', agents=3, edges=2, poisoned=[a])"
    assert network.with_poisoned(["b"]).poisoned == network.with_poisoned([2]).poisoned == (2,)
    assert network.with_poisoned(["b"]).names == network.names
    with pytest.raises(BezoarError, match=r"poisoned: agent d is not in .*; allowed: c, a, b"):
        network.with_poisoned(["d"])


def test_nodes_counted_from_one_are_called_so():
    network = Network(nx.path_graph([1, 2, 3]), poisoned=[1])
    assert network.names == ("1", "2", "3")
    assert network.poisoned == (0,)
    assert network.with_poisoned(["1"]).poisoned == (0,)  # a name
    assert network.with_poisoned([1]).poisoned == (1,)  # a number


def test_names_and_places_are_no_part_of_the_value():
    plain, named = Network(nx.path_graph(3), [1]), Network(nx.path_graph(["x", "y", "z"]), ["y"])
    assert plain == named
    assert plain.names == ("0", "1", "2")


@pytest.mark.parametrize("yes", [True, 1, 1.0, "1", "true", "True", " YES ", np.True_])
@pytest.mark.parametrize("no", [False, 0, "0", "no", "false", None, ""])
def test_marks_count_unless_agents_are_given(yes, no):
    graph = nx.path_graph(3)
    graph.nodes[2]["poisoned"] = yes
    graph.nodes[0]["poisoned"] = no
    assert Network(graph).poisoned == (2,)
    assert Network(graph, [0]).poisoned == (0,)
    assert Network(graph, ()).poisoned == ()


def test_attributes_that_look_like_a_mark_are_refused():
    for key in ("poisend", "is_poisoned", "posioned", "poison"):
        graph = nx.path_graph(3)
        graph.nodes[2][key] = True
        with pytest.raises(BezoarError, match=f"{key}'; did you mean 'poisoned'"):
            Network(graph)
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: {"position": 1, "person": "x", "club": 2}})
    assert Network(graph).poisoned == ()


@pytest.mark.parametrize(
    "keys",
    [("x", "y"), ("lon", "lat"), ("Longitude", "Latitude"), "pos", "viz", "graphics"],
)
def test_coordinates(keys):
    graph, places = nx.path_graph(["a", "b", "c"]), [(0.0, 1.0), (2.0, 3.0), (5.0, -1.0)]
    for node, (across, up) in zip(graph, places, strict=True):
        if keys == "pos":
            graph.nodes[node]["pos"] = np.array([across, up])
        elif keys == "viz":
            graph.nodes[node]["viz"] = {"position": {"x": across, "y": up, "z": 0.0}}
        elif keys == "graphics":
            graph.nodes[node]["graphics"] = {"x": across, "y": up}
        else:
            graph.nodes[node].update({keys[0]: str(across), keys[1]: up})
    assert Network(graph).positions.tolist() == [list(place) for place in places]
    assert Network(graph).with_poisoned([1]).positions is not None
    graph.add_edge("c", "nowhere")
    assert Network(graph).positions is None


@pytest.mark.parametrize("found", [None, "here", ["here"], {}, {"position": "here"}])
@pytest.mark.parametrize("key", ["pos", "position", "viz", "graphics"])
def test_what_is_no_place_is_left_alone(key, found):
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, found, key)
    assert Network(graph).positions is None


def test_what_is_symmetric_is_taken_as_it_is():
    both = nx.path_graph(3).to_directed()
    assert Network(both).edges == ((0, 1), (1, 2))
    assert Network(weighted(0.5, 0.5)).note == ""
    assert Network(nx.MultiGraph([(0, 1), (1, 2)])).note == ""


def test_what_is_not_symmetric_is_taken_with_a_note():
    graph = nx.MultiDiGraph([(0, 1), (0, 1), (1, 1), (2, 1)])
    graph.add_edge(1, 0, weight=3)
    network = Network(graph, symmetric=True)
    assert network.edges == ((0, 1), (1, 2))
    for told in ("1 one-way link (2 → 1)", "1 repeated link (0 – 1)", "itself (1)", "from 1 to 3"):
        assert told in network.note
    assert network.note in network.with_poisoned([0], "more").note
