"""Ways of computing that are taken for speed give what the plain ways give."""

import numpy as np
import pytest
import torch
from aggregator_reference import aggregate

from bezoar import aggregators, networks
from bezoar.aggregators import _gram

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
def test_long_float32_messages_give_what_short_ones_do(monkeypatch, name):
    sent = messages(1, 20_000) + 5
    short = aggregators.create(name)(sent, NETWORK)
    monkeypatch.setattr(_gram, "SPAN", 3_000)
    long = aggregators.create(name)(sent, NETWORK)
    assert torch.allclose(short, long, atol=1e-4)


def test_inner_products_of_long_messages(monkeypatch):
    sent = messages(2, 20_000) * 1e-3 + 100
    exact = _gram.gram(sent)
    monkeypatch.setattr(_gram, "SPAN", 3_000)
    assert torch.allclose(_gram.gram(sent), exact, rtol=1e-5, atol=1e-6 * float(exact.max()))
    wide = sent.double()
    assert torch.allclose(_gram.gram(wide), exact, rtol=1e-12)


@pytest.mark.parametrize("name", ["trimmed_mean", "median"])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_coordinates_may_be_taken_in_turns(monkeypatch, name, kind):
    """Models and shares are the same, whatever the length of a turn."""
    sent = messages(2, 1_000).to(kind)
    exchange = aggregators.Exchange(aggregators.create(name), [NETWORK])
    whole, unasked = exchange.step(sent, share=True), exchange(sent)
    monkeypatch.setattr(_gram, "SPAN", 300)  # turns of 300, 300, 300 and 100
    exchange = aggregators.Exchange(aggregators.create(name), [NETWORK])
    parts = exchange.step(sent, share=True)
    assert torch.equal(whole[0], parts[0])
    assert torch.allclose(whole[1], parts[1], rtol=1e-12)
    assert torch.allclose(unasked, exchange(sent), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("agents", [12, 13, 40])
def test_sums_by_products_and_one_by_one(agents):
    """A ring has three inputs an agent: up to twelve agents are summed by a matrix product."""
    network = networks.ring(agents, poisoned=(2,))
    sent = torch.randn(2, agents, 300, generator=torch.Generator().manual_seed(agents))
    found = aggregators.create("trimmed_mean")(sent, network).double().numpy()
    for run in range(2):
        expected, _ = aggregate("trimmed_mean", sent[run].numpy(), network)
        assert np.allclose(found[run], expected, rtol=1e-5, atol=1e-6)


def test_an_exchange_serves_messages_of_any_kind_in_turn():
    """What is kept of the last call must not be taken for the next."""
    exchange = aggregators.Exchange(aggregators.create("trimmed_mean"), [NETWORK])
    for sent in (
        messages(3),
        messages(4, 100),
        messages(5).double(),
        messages(6).expand(3, 10, 500),
    ):
        fresh = aggregators.create("trimmed_mean")(sent, NETWORK)
        assert torch.equal(exchange(sent), fresh)


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
