"""Ways of computing that are taken for speed give what the plain ways give."""

import networkx as nx
import numpy as np
import pytest
import torch
from aggregator_inputs import exchanged
from aggregator_reference import aggregate
from hypothesis import given
from hypothesis import strategies as st

from bezoar import Network, aggregators, networks
from bezoar.exchange import Exchange, Tuning
from bezoar.exchange._gathered import GatheredInputs
from bezoar.exchange._inner_products import Part, inner_products, network_products
from bezoar.exchange._tuning import side_by_side

NETWORK = networks.two_castle()  # agent 9 does not hear the poisoned agent 4 and drops nothing


def messages(seed=0, length=500):
    return torch.randn(10, length, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("outlier", [1.0, 1e4, 1e6, 1e8, 1e10, 1e20, 1e30, -1e30])
@pytest.mark.parametrize("sender", [4, 9])
@pytest.mark.parametrize("large_coordinate", [False, True])
def test_an_extreme_is_dropped_without_a_trace(outlier, sender, large_coordinate):
    """Whatever large values others, or other coordinates, have kept."""
    sent = messages()
    sent[sender, 7] = outlier
    if large_coordinate:
        sent[:, 400] *= 1e6
    found = aggregators.create("trimmed_mean")(sent, NETWORK).double().numpy()
    expected, _ = aggregate("trimmed_mean", sent.numpy(), NETWORK)
    drops = [agent for agent in range(10) if agent != 9]
    assert np.abs(found[drops, 7] - expected[drops, 7]).max() < 1e-5
    assert np.allclose(found[:, :300], expected[:, :300], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_small_coordinates_beside_large_ones(scale):
    """One of seven sends 1e12 in a coordinate where the others send millionths."""
    sent = messages()[:7] * 1e6
    sent[:, 3] = scale * torch.arange(1.0, 8)
    sent[6, 3] = 1e12
    found = aggregators.create("trimmed_mean")(sent, networks.complete(7))
    assert torch.allclose(found[:, 3], torch.tensor(scale * 4), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["faba", "ios", "centered_clipping", "clipped_gossip", "rfa"])
def test_long_float32_messages_give_what_short_ones_do(name):
    sent = messages(1, 20_000) + 5
    rule = aggregators.create(name)
    short, _ = exchanged(rule, sent, NETWORK)
    long, _ = exchanged(rule, sent, NETWORK, Tuning(long=3_000))
    assert torch.allclose(short, long, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("outliers", [range(4), range(4, 10)])
def test_inner_products_of_rows_in_several_places(dtype, outliers):
    """Wherever the most central row is: outliers in one part leave it in the other."""
    runs = torch.stack([messages(run, 400) for run in range(3)]).to(dtype)
    runs[:, list(outliers)] += 1e3
    where = [2, 0, 1]
    parts = [Part(runs[:, :4][[1, 2, 0]], where), Part(runs[:, 4:], range(3))]
    tuning = Tuning(long=150)
    whole = network_products([Part(runs, range(3))], map, tuning)
    torch.testing.assert_close(network_products(parts, map, tuning), whole, rtol=0, atol=0)


def test_inner_products_of_long_messages():
    sent = messages(2, 20_000) * 1e-3 + 100
    exact = network_products([Part(sent[None], [0])], map)
    tuning = Tuning(long=3_000)
    close = {"rtol": 1e-5, "atol": 1e-6 * float(exact.max())}
    assert torch.allclose(network_products([Part(sent[None], [0])], map, tuning), exact, **close)
    wide = sent.double()
    assert torch.allclose(network_products([Part(wide[None], [0])], map, tuning), exact, rtol=1e-12)
    # About a reference of its own, in float32 and in float64.
    distances = aggregators.pairwise(exact)
    found = [
        aggregators.pairwise(inner_products(GatheredInputs.held(part[None]))[0])
        for part in (sent, wide)
    ]
    assert torch.allclose(found[0], distances, **close)
    assert torch.allclose(found[1], distances, rtol=1e-10)


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6])
def test_float32_products_are_taken_again_where_inputs_lie_close_together(spread):
    """Two of eight inputs lie within ``spread`` of each other, at distance one from the rest."""
    generator = torch.Generator().manual_seed(4)
    sent = torch.randn(8, 3_000, generator=generator) / 3_000**0.5
    sent[1] = sent[0] + spread * torch.randn(3_000, generator=generator) / 3_000**0.5
    apart = torch.cdist(sent.double(), sent.double(), compute_mode="donot_use_mm_for_euclid_dist")
    found = aggregators.pairwise(inner_products(GatheredInputs.held(sent[None]))[0]).sqrt()
    assert torch.allclose(found, apart, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("name", ["faba", "krum", "rfa", "nearest", "least_variance", "nnm+mean"])
@pytest.mark.parametrize("power", [60, 80, 100])
@pytest.mark.parametrize("where", ["dense", "long", "gathered"])
def test_squares_too_small_for_float32(name, power, where):
    """Float32 messages of a small scale, which is a power of two and changes no digit."""
    ways = {"dense": Tuning(), "long": Tuning(long=300), "gathered": Tuning(dense_advantage=0)}
    rule, sent = aggregators.create(name), messages(6)
    small, _ = exchanged(rule, sent * 2.0**-power, NETWORK, ways[where])
    expected, _ = exchanged(rule, sent, NETWORK, ways[where])
    assert torch.allclose(small * 2.0**power, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["trimmed_mean", "median"])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_coordinates_may_be_taken_in_turns(name, kind):
    """Models and shares are the same, whatever the length of a turn."""
    sent = messages(2, 1_000).to(kind)
    rule = aggregators.create(name)
    turns = Tuning(long=300)  # turns of 300, 300, 300 and 100
    whole, parts = (exchanged(rule, sent, NETWORK, way, share=True) for way in (None, turns))
    assert torch.equal(whole[0], parts[0])
    assert torch.allclose(whole[1], parts[1], rtol=1e-12)
    assert torch.equal(whole[0], exchanged(rule, sent, NETWORK, turns)[0])


@pytest.mark.parametrize("keep_own", [False, True])
@pytest.mark.parametrize("dropped", [1, 2, 3])
@pytest.mark.parametrize("agents", [8, 11, 14])
def test_neighbourhoods_of_many_sizes(agents, dropped, keep_own):
    """Trimmed together and apart."""
    rng = np.random.default_rng(agents)
    graph = nx.complete_graph(agents)
    graph.remove_edges_from([(0, 1), (2, 3), (0, 4), (5, 6)])
    network = Network(graph, rng.choice(agents, dropped, replace=False).tolist())
    sent = torch.from_numpy(rng.normal(size=(2, agents, 300)))
    rule = aggregators.create("trimmed_mean", keep_own=keep_own)
    together, apart = (
        exchanged(rule, sent, network, Tuning(dense_advantage=way))[0] for way in (16, 0)
    )
    assert torch.allclose(together, apart, rtol=0, atol=1e-14)
    for run in range(2):
        expected, _ = aggregate("trimmed_mean", sent[run].numpy(), network, keep_own=keep_own)
        assert np.allclose(together[run], expected, rtol=0, atol=1e-14)


def test_an_exchange_serves_messages_of_any_kind_in_turn():
    """What is kept of the last call must not be taken for the next."""
    exchange = Exchange([aggregators.create("trimmed_mean")], [NETWORK])
    for sent in (messages(3), messages(4, 100), messages(5).double()):
        fresh = aggregators.create("trimmed_mean")(sent, NETWORK)
        assert torch.equal(exchange(sent[None])[0][0], fresh)


@pytest.mark.parametrize("name", ["faba", "ios", "krum", "rfa", "centered_clipping"])
@pytest.mark.parametrize("far", [1e4, 1e8, 1e10])
def test_an_outlier_where_nobody_looks_costs_no_digits(name, far):
    """All sampled coordinates are zero: any input may be the reference, the outlier too."""
    network = networks.complete(8)
    sent = torch.randn(8, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    sent[:, ::15] = 0
    order = torch.tensor([3, 0, 1, 2, 4, 5, 6, 7])
    sent[0, 7] = far
    rule = aggregators.create(name)
    assert torch.allclose(rule(sent, network)[order], rule(sent[order], network), atol=1e-5)


@given(st.lists(st.integers(0, 9), min_size=1, unique=True), st.integers(1, 4))
def test_runs_that_lie_beside_each_other_are_multiplied_together(where, most):
    stretches = side_by_side(most, where)
    assert sorted(run for runs in stretches for run in runs) == list(range(len(where)))
    for runs in stretches:
        assert len(runs) <= most
        first = where[runs[0]]
        assert [where[run] for run in runs] == list(range(first, first + len(runs)))
    table = torch.stack([messages(place, 40) for place in range(10)])
    tuning = Tuning(block_bytes=most * 80 * table.shape[1])
    found = network_products([Part(table, where)], map, tuning)
    for place, products in zip(where, found, strict=True):
        alone = network_products([Part(table[place : place + 1], [0])], map)[0]
        torch.testing.assert_close(products, alone, rtol=1e-12, atol=1e-12)
