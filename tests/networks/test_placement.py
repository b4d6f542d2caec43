"""Where a number of poisoned agents sit."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezoar import BezoarError, Network, networks, theory
from bezoar.networks import PLACEMENTS, place


@st.composite
def small(draw):
    """A connected graph of three to eight agents, and how many of them are poisoned."""
    agents = draw(st.integers(3, 8))
    graph = nx.random_labeled_tree(agents, seed=draw(st.integers(0, 10**6)))
    pairs = st.tuples(st.integers(0, agents - 1), st.integers(0, agents - 1))
    graph.add_edges_from((a, b) for a, b in draw(st.lists(pairs, max_size=20)) if a != b)
    return Network(graph), draw(st.integers(1, agents - 1))


@pytest.mark.parametrize("placement", PLACEMENTS)
@settings(deadline=None, derandomize=True, max_examples=20)
@given(drawn=small())
def test_there_are_as_many_as_asked_for(placement, drawn):
    network, count = drawn
    placed = place(network, count, placement, seed=3)
    assert len(placed.poisoned) == count
    assert placed.edges == network.edges
    assert place(network.with_poisoned([0]), count, placement, seed=3) == placed


@settings(deadline=None, derandomize=True, max_examples=60)
@given(drawn=small())
def test_worst_has_the_largest_contamination_and_a_cut_cuts(drawn):
    network, count = drawn
    others = [network.with_poisoned(some) for some in combinations(range(network.agents), count)]
    worst = theory.contamination(place(network, count, "worst")).delta_max
    assert worst == max(theory.contamination(other).delta_max for other in others)
    cut = place(network, count, "cut")
    assert cut.regular_is_connected == all(other.regular_is_connected for other in others)
    assert bool(cut.note) == cut.regular_is_connected


def test_degree_and_betweenness():
    graph = nx.star_graph(4)  # 0 in the middle
    graph.add_edges_from([(4, 5), (5, 6), (6, 7)])
    network = Network(graph)
    assert place(network, 2, "degree").poisoned == (0, 4)
    assert place(network, 2, "betweenness").poisoned == (0, 4)
    assert place(networks.line(9), 1, "degree").poisoned == (1,)
    assert place(networks.line(9), 1, "betweenness").poisoned == (4,)
    assert place(networks.line(9), 3, "last").poisoned == (6, 7, 8)


def test_a_random_placement_follows_from_the_seed():
    network = networks.ring(50)
    placed = {seed: place(network, 5, "random", seed).poisoned for seed in range(20)}
    assert placed[3] == place(network, 5, "random", 3).poisoned
    assert len(set(placed.values())) == 20
    assert len(set(np.concatenate(list(placed.values())))) > 35


def test_a_cut_leaves_small_pieces():
    assert place(networks.line(11), 1, "cut").poisoned == (5,)
    assert place(networks.fan(10), 2, "cut").poisoned == (4, 9)
    barbell = Network(nx.barbell_graph(6, 1))
    assert place(barbell, 1, "cut").poisoned == (6,)


def test_where_no_cut_is_possible_it_says_so():
    fan = place(networks.fan(10), 1, "cut")
    assert fan.poisoned == (9,)  # with one agent of the path it would be a cut
    assert fan.note == "1 poisoned agent cannot cut the regular network; it takes 2"
    assert "no poisoned agents can cut" in place(networks.complete(6), 2, "cut").note
    large = Network(nx.random_regular_graph(20, 400, seed=0))
    assert "no 3 agents were found that cut" in place(large, 3, "cut").note


def test_nobody_and_refusals():
    assert place(networks.ring(5), 0, "cut").poisoned == ()
    with pytest.raises(BezoarError, match="poisoned: expected an integer from 0 to 4, found 5"):
        place(networks.ring(5), 5, "worst")
    with pytest.raises(BezoarError, match="placement: 'wrost' is not known; allowed: worst"):
        place(networks.ring(5), 1, "wrost")
    with pytest.raises(BezoarError, match="seed: expected an integer of at least 0, found -1"):
        place(networks.ring(5), 1, "random", seed=-1)
