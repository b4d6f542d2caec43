"""Shards cover a network, and their halos are the neighbours elsewhere."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezoar import BezoarError, Network
from bezoar.networks import ring, shard_of, shard_owners, torus


@st.composite
def cut_networks(draw):
    """A connected network and a number of shards."""
    agents = draw(st.integers(2, 24))
    links = draw(st.floats(0, 0.4))
    graph = nx.gnp_random_graph(agents, links, seed=draw(st.integers(0, 99)))
    nx.add_path(graph, draw(st.permutations(range(agents))))
    return Network(graph, ()), draw(st.integers(1, min(agents, 5)))


@given(cut_networks())
def test_shards_cover_all_agents_once_and_hear_exactly_their_neighbours(drawn):
    network, count = drawn
    owner = shard_owners(network, count)
    shards = [shard_of(network, owner, number) for number in range(count)]
    everyone = np.concatenate([shard.members for shard in shards])
    assert sorted(everyone) == list(range(network.agents))
    for number, shard in enumerate(shards):
        members = set(shard.members.tolist())
        around = {other for agent in members for other in network.neighbours(agent)} - members
        assert sorted(shard.halo) == sorted(around)
        assert len(shard.members) > 0
        stops = np.cumsum(shard.received)
        for other, theirs in enumerate(shards):
            # What the other sends arrives in the order in which it is expected.
            expected = shard.halo[stops[other] - shard.received[other] : stops[other]]
            np.testing.assert_array_equal(theirs.members[theirs.sent[number]], expected)


@pytest.mark.parametrize("network", [ring(200), torus(12, 30)])
def test_few_links_are_cut(network):
    owner = shard_owners(network, 4)
    sizes = np.bincount(owner)
    assert sizes.max() <= 1.1 * network.agents / 4
    cut = sum(owner[one] != owner[other] for one, other in network.edges)
    assert cut <= 0.3 * len(network.edges)


def test_more_shards_than_agents_are_refused():
    with pytest.raises(BezoarError, match="at most 5"):
        shard_owners(ring(5), 6)
