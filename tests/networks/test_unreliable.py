"""Networks whose links and agents are silent now and then, and networks in turn by their names."""

import pickle

import networkx
import numpy as np
import pytest

from bezoar import BezoarError, aggregators, networks, theory
from bezoar.networks import Network, NetworkOverTime, UnreliableNetwork

NETWORK = networks.erdos_renyi(12, 0.5, 3, seed=1)
SILENT = {"silent_links": 0.3, "silent_agents": 0.2}
ITERATIONS = range(1, 201)


def test_what_is_left_is_a_part_of_the_network():
    unreliable = UnreliableNetwork(NETWORK, **SILENT)
    for iteration in ITERATIONS:
        left = unreliable.at(iteration)
        assert set(left.edges) <= set(NETWORK.edges)
        assert (left.poisoned, left.whole) == (NETWORK.poisoned, NETWORK)
        for kind in networks.MIXINGS:
            mixing, whole = left.mixing(kind).toarray(), NETWORK.mixing(kind).toarray()
            linked = left.adjacency.toarray() == 1
            assert np.array_equal(mixing[linked], whole[linked])
            np.testing.assert_allclose(mixing.sum(0), 1)
            np.testing.assert_allclose(mixing, mixing.T)
            assert not mixing[~linked & ~np.eye(12, dtype=bool)].any()


def test_every_link_and_agent_is_silent_as_often_as_asked_for():
    links = UnreliableNetwork(NETWORK, silent_links=0.3)
    counts = sum(links.at(k).adjacency.toarray() for k in ITERATIONS)
    heard = counts[NETWORK.adjacency.toarray() == 1] / len(ITERATIONS)
    assert np.abs(heard - 0.7).max() < 5 * np.sqrt(0.21 / len(ITERATIONS))
    agents = UnreliableNetwork(NETWORK, silent_agents=0.2)
    alone = sum(agents.at(k).degrees == 0 for k in ITERATIONS) / len(ITERATIONS)
    assert alone.min() > 0.2 - 5 * np.sqrt(0.16 / len(ITERATIONS))
    for k in ITERATIONS[:20]:  # of an agent that is heard, all links are there but to silent ones
        left = agents.at(k)
        silent = left.degrees == 0
        whole = NETWORK.adjacency.toarray().copy()
        whole[silent], whole[:, silent] = 0, 0
        assert np.array_equal(left.adjacency.toarray(), whole)


def test_draws_follow_from_the_seed_and_the_iteration_alone():
    one, other = UnreliableNetwork(NETWORK, **SILENT), UnreliableNetwork(NETWORK, **SILENT)
    later = [one.at(k) for k in (9, 2, 5)]
    assert later == [other.at(k) for k in (9, 2, 5)]
    assert one == other
    assert hash(one) == hash(other)
    assert one.identity(10) == other.identity(10)
    for changed in ({"seed": 1}, {"silent_links": 0.2}, {"silent_agents": 0.3}):
        another = UnreliableNetwork(NETWORK, **{**SILENT, **changed})
        assert [another.at(k) for k in (9, 2, 5)] != later
        assert another != one
        assert another.identity(10) != one.identity(10)
    fewer, more = (UnreliableNetwork(NETWORK, silent_links=p) for p in (0.2, 0.4))
    assert all(set(more.at(k).edges) <= set(fewer.at(k).edges) for k in ITERATIONS)


def test_equal_networks_keep_their_own_names():
    named = networks.from_edges([["a", "b"], ["b", "c"], ["c", "d"]])
    for network in (named, networks.line(4, poisoned=[]), named):
        unreliable = UnreliableNetwork(network, silent_links=0.5, seed=7)
        for k in (1, 2, 3):
            left = unreliable.at(k)
            assert (left.name, left.names) == (network.name, network.names)


def test_nobody_or_everybody_is_silent():
    assert UnreliableNetwork(NETWORK).at(1).edges == NETWORK.edges
    assert UnreliableNetwork(NETWORK, silent_links=1).at(1).edges == ()
    assert UnreliableNetwork(NETWORK, silent_agents=1).at(1).edges == ()
    with pytest.raises(BezoarError, match="silent_links: expected a number from 0 to 1, found 3"):
        UnreliableNetwork(NETWORK, silent_links=3)


@pytest.mark.parametrize("estimate", ["exact", "max", 2, "up_to_3"])
@pytest.mark.parametrize("name", ["trimmed_mean", "ios", "nnm+krum"])
def test_estimates_are_those_that_rules_can_bear(name, estimate):
    rule, unreliable = (
        aggregators.create(name, estimate=estimate),
        UnreliableNetwork(networks.complete(12, 3), **SILENT),
    )
    whole = rule.estimates(unreliable.turns[0])
    for k in ITERATIONS[:20]:
        left = unreliable.at(k)
        found, inputs = rule.estimates(left), left.degrees + 1
        rule.check(left)
        expected = left.poisoned_inputs if estimate == "exact" else whole
        assert (found <= expected).all()
        lowered = found < expected
        assert (rule.inputs_needed(found[lowered] + 1) > inputs[lowered]).all()


def test_networks_in_turn_by_name():
    made = networks.create("over_time", networks=["fan", {"name": "line", "agents": 10}])
    assert [each.name for each in made.turns] == ["fan", "line"]
    assert made.poisoned == networks.fan().poisoned
    assert set(made.edges) == set(networks.fan().edges) | set(networks.line().edges)
    assert made == NetworkOverTime([networks.fan(), networks.line(10, made.poisoned)])
    assert UnreliableNetwork(made, silent_links=0.1).note == made.note != ""
    other = made.with_poisoned([3])
    assert [each.poisoned for each in other.turns] == [(3,), (3,)]
    assert other.fingerprint != made.fingerprint
    with pytest.raises(BezoarError, match="expected one that does not change, found over time"):
        theory.contamination(made)
    with pytest.raises(BezoarError, match="expected one that does not change, found over time"):
        aggregators.Mean()(np.ones((10, 1)), made)
    with pytest.raises(BezoarError, match=r"expected 10 agents in each, .* found 12 in line"):
        networks.create("over_time", networks=["fan", {"name": "line", "agents": 12}])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "networks: expected at least one, found none"),
        ([{"agents": 3}], r"networks: expected names or tables with a name, found \{'agents': 3\}"),
        ([NETWORK], "networks: expected names or tables with a name, found Network"),
        ([{"name": "fan", "agnts": 3}], "network fan: no option 'agnts'; allowed: agents"),
        (["fam"], "network: 'fam' is not known; allowed: fan"),
    ],
)
def test_what_cannot_be_networks_in_turn(given, told):
    with pytest.raises(BezoarError, match=f"^{told}"):
        networks.over_time(given)


def test_agents_of_networks_in_turn_have_the_same_names():
    one, other = (
        networks.from_edges([["a", "b"], ["b", "c"]], []),
        networks.from_edges([["b", "a"], ["b", "c"]], []),
    )
    with pytest.raises(BezoarError, match="found 'b' for 'a' in iteration 2"):
        NetworkOverTime([one, other])


def test_networkx_graphs_are_networks():
    path = networkx.path_graph(4)
    assert NetworkOverTime([path]).turns == (Network(path),)
    assert NetworkOverTime(lambda k: path).at(3) == Network(path)
    assert UnreliableNetwork(path, silent_links=0.5).whole.edges == Network(path).edges


def alternating(iteration):
    return networkx.path_graph(5) if iteration % 2 else networkx.cycle_graph(5)


def test_networks_of_a_function_can_be_sent_to_other_processes():
    poisoned = NetworkOverTime(alternating).with_poisoned([3])
    assert poisoned == NetworkOverTime(alternating).with_poisoned([3])
    for sent in (poisoned, UnreliableNetwork(poisoned, silent_agents=0.5)):
        received = pickle.loads(pickle.dumps(sent))
        assert [received.at(k) for k in (1, 2)] == [sent.at(k) for k in (1, 2)]
        assert received == sent


def test_what_silent_networks_cannot_be_made_of_is_refused():
    with pytest.raises(BezoarError, match=r"network: expected a Network .* found 'fan'"):
        UnreliableNetwork("fan", silent_links=0.1)
    with pytest.raises(BezoarError, match="seed: expected an integer of at least 0, found -1"):
        UnreliableNetwork(NETWORK, silent_links=0.1, seed=-1)
