"""Which inputs reach whom: large networks, several networks, and refusals of messages."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from aggregator_inputs import (
    HEAD,
    PATHS,
    Case,
    apply,
    assert_close,
    exchanged,
    random_messages,
)
from one_agent import IN_TRAINING

from bezoar import BezoarError, aggregators, networks
from bezoar.aggregators import OutputLayer, WeightedAggregator
from bezoar.exchange import Exchange, FalseMessages, Sent, Tuning, is_dense
from bezoar.exchange._output_layers import finite_rows
from bezoar.networks import shard_of
from bezoar.training import Workers

EVERY_RULE = [
    Case("weighted_mean"),
    Case("trimmed_mean", estimate=0),
    Case("faba"),
    Case("ios"),
    Case("centered_clipping", threshold=2.0),
    Case("clipped_gossip", threshold=2.0),
    Case("rfa"),
    Case("lfighter", head=HEAD),
    Case("mean"),
    Case("median"),
    Case("krum"),
    *(Case(name) for name in ("nearest", "clipped_sum", "trimmed_sum")),
    *(Case(name) for name in ("least_diameter", "least_variance", "least_eigenvalue")),
    Case("divide_and_conquer"),
    Case("caf", estimate=0),
    Case("meamed"),
    Case("bulyan", estimate=0),
    Case("total_variation", strength=0.1),
    Case("distance_filter", estimate=0),
    Case("balance", reach=1.2),
    Case("local"),
]

each_rule = pytest.mark.parametrize("case", EVERY_RULE, ids=str)


def test_every_rule_is_here():
    assert {case.name for case in EVERY_RULE} == set(aggregators.AGGREGATORS) - IN_TRAINING


#: Of so many inputs these rules do not look at every split or subset, nor does the loop; that of
#: Bulyan would look at all pairs again and again.
SEARCHING = ("least_diameter", "least_variance", "least_eigenvalue", "lfighter", "bulyan")


@pytest.mark.parametrize("case", [c for c in EVERY_RULE if c.name not in SEARCHING], ids=str)
def test_a_star_of_300_leaves(case):
    network = networks.star(301, poisoned=3)
    assert not is_dense(network)
    messages = random_messages(np.random.default_rng(31), network)
    expected, _ = case.loop(messages, network)
    found = apply(case.rule(), messages, network)
    assert_close(found, expected, case.tolerance * np.abs(messages).max())


@each_rule
@pytest.mark.parametrize("where", PATHS)
def test_float32_stays_float32_and_is_as_exact_as_that(case, where):
    network = networks.fan(10)
    messages = random_messages(np.random.default_rng(32), network, (2,)).astype(np.float32)
    found = apply(case.rule(), messages, network, torch.float32, tuning=PATHS[where])
    exact = apply(case.rule(), messages, network, torch.float64, tuning=PATHS[where])
    assert found.dtype == np.float32
    assert_close(found, exact, 1e-5)


@each_rule
@pytest.mark.parametrize("where", PATHS)
def test_runs_do_not_notice_each_other(case, where):
    # A run alone, beside others, beside one with broken messages: the same outcome.
    network = networks.two_castle(10)
    messages = random_messages(np.random.default_rng(33), network, (3,))
    messages[1] = np.nan
    together = apply(case.rule(), messages, network, tuning=PATHS[where])
    for run in (0, 2):
        alone = apply(case.rule(), messages[run], network, tuning=PATHS[where])
        assert_close(together[run], alone, 1e-7 if case.name == "rfa" else 1e-12)


@each_rule
def test_messages_need_not_be_contiguous(case):
    network = networks.fan(6)
    messages = torch.from_numpy(random_messages(np.random.default_rng(34), network, (2,)))
    turned = messages.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert not turned.is_contiguous()
    assert torch.allclose(case.rule()(turned, network), case.rule()(messages, network))


@each_rule
@pytest.mark.parametrize("shape", [(6,), (5, 4), (2, 7, 4), (6, 4, 4)])
def test_messages_of_the_wrong_shape_are_refused(case, shape):
    with pytest.raises(BezoarError, match=r"messages: expected shape \[\.\.\., 6, D\], found \["):
        case.rule()(torch.zeros(shape), networks.fan(6))


@each_rule
def test_integer_messages_are_refused(case):
    with pytest.raises(BezoarError, match=r"messages: expected floating point .* torch\.int64"):
        case.rule()(torch.zeros(6, 9, dtype=torch.int64), networks.fan(6))


@each_rule
def test_as_many_runs_as_networks(case):
    exchange = Exchange([case.rule()] * 2, [networks.fan(6), networks.two_castle(6)])
    with pytest.raises(BezoarError, match="2 networks need as many runs, found 3"):
        exchange(torch.zeros(3, 6, 9))


@each_rule
@pytest.mark.parametrize("where", PATHS)
def test_networks_of_different_sizes_are_refused(case, where):
    nets = [networks.fan(6), networks.fan(7)]
    with pytest.raises(BezoarError, match="same number of agents"):
        Exchange([case.rule()] * 2, nets, tuning=PATHS[where])


@each_rule
def test_one_network_given_often_is_one_network(case):
    network = networks.fan(6)
    messages = torch.from_numpy(random_messages(np.random.default_rng(35), network, (4,)))
    equal = networks.fan(6)
    assert equal is not network
    found, _ = Exchange([case.rule()] * 4, [network, equal, network, equal])(messages)
    assert torch.allclose(found, case.rule()(messages, network))


def test_lfighter_needs_to_know_the_output_layer():
    rule = aggregators.create("lfighter")
    with pytest.raises(BezoarError, match=r"lfighter: give head=\(classes, features\)"):
        rule(torch.zeros(6, 9), networks.fan(6))


def test_an_output_layer_longer_than_the_message_is_refused():
    rule = aggregators.create("lfighter", head=(5, 2))
    with pytest.raises(BezoarError, match="head: 5 × 2 is longer than a message of 9"):
        rule(torch.zeros(6, 9), networks.fan(6))


def test_every_rule_has_the_output_layer_that_it_says():
    network = networks.two_castle(8)
    messages = torch.from_numpy(random_messages(np.random.default_rng(36), network, (3,)))
    messages = torch.cat([messages, messages.flip(1) ** 2, messages.roll(1, 1)], dim=-1)
    rules = [
        aggregators.create("faba"),
        aggregators.create("lfighter", head=(2, 4)),
        aggregators.create("lfighter", head=(4, 2)),
    ]
    found, _ = Exchange(rules, [network] * 3)(messages)
    for rule, sent, models in zip(rules, messages, found, strict=True):
        assert torch.allclose(models, rule(sent, network), rtol=1e-12)


@dataclass(frozen=True)
class FirstOutputLayer(WeightedAggregator):
    """The input whose output layer has the longest row."""

    name: ClassVar[str] = "first_output_layer"
    reads: ClassVar[str] = "output_layer"

    def weights(self, neighbourhood):
        longest = neighbourhood.output_layers.norms().amax(-2)
        scores = longest.masked_fill(~neighbourhood.finite, -1)
        return neighbourhood.largest(scores).to(torch.float64)


@pytest.mark.parametrize("where", PATHS)
def test_several_rules_that_read_output_layers(where):
    network = networks.two_castle(10)
    messages = torch.from_numpy(random_messages(np.random.default_rng(37), network, (2,)))
    rules, layer = [aggregators.LFighter(), FirstOutputLayer()], OutputLayer(*HEAD)
    options = {"layer": layer, "tuning": PATHS[where]}
    together, _ = Exchange(rules, [network] * 2, **options)(messages)
    for run, rule in enumerate(rules):
        alone, _ = Exchange([rule], [network], **options)(messages[run : run + 1])
        assert torch.allclose(together[run], alone[0], rtol=0, atol=1e-12)
    kept = together[1, 0]
    inputs = messages[1, list(network.closed_neighbourhood(0))]
    rows = inputs[:, :6].unflatten(-1, HEAD).norm(dim=-1).amax(-1)
    assert torch.allclose(kept, inputs[rows.argmax()])


@each_rule
@pytest.mark.parametrize("where", PATHS)
def test_half_precision_is_as_exact_as_that(case, where):
    network = networks.fan(10)
    messages = random_messages(np.random.default_rng(38), network, (2,)).astype(np.float16)
    found, exact = (
        apply(case.rule(), messages, network, kind, tuning=PATHS[where])
        for kind in (torch.float16, torch.float64)
    )
    assert_close(found, exact, 0.03)


@each_rule
@pytest.mark.parametrize("where", PATHS)
def test_an_exchange_takes_messages_of_one_type_after_another(case, where):
    network = networks.fan(10)
    messages = torch.from_numpy(random_messages(np.random.default_rng(39), network, (1,)))
    exchange = Exchange([case.rule()], [network], tuning=PATHS[where])
    for kind in (torch.float32, torch.float64):
        found, _ = exchange(messages.to(kind))
        alone, _ = exchanged(case.rule(), messages.to(kind), network, PATHS[where])
        assert torch.equal(found, alone)


def test_runs_that_are_not_contiguous():
    network = networks.ring(60)
    messages = torch.randn(60, 3, 20, generator=torch.Generator().manual_seed(3)).transpose(0, 1)
    for name in ("ios", "trimmed_mean"):
        rule = aggregators.create(name)
        found, _ = Exchange([rule] * 3, [network] * 3)(messages)
        assert torch.equal(found, Exchange([rule] * 3, [network] * 3)(messages.contiguous())[0])


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (lambda net, rule: rule([[1.0]], net), r"expected shape \[..., 6, D\], found \[1, 1\]"),
        (lambda net, rule: rule(torch.zeros(6, 0), net), r"shape \[6, 0\]"),
        (lambda net, rule: Exchange([], []), "runs: at least one is needed"),
        (lambda net, rule: Exchange([rule], []), "networks: expected 1, one a rule, found 0"),
        (
            lambda net, rule: Exchange([rule], [net])(
                torch.zeros(1, 6, 3), out=torch.zeros(1, 6, 4)
            ),
            r"out: expected contiguous \[1, 6, 3\] of torch.float32 on cpu, found \[1, 6, 4\]",
        ),
        (
            lambda net, rule: Exchange([rule], [net])(
                torch.zeros(1, 6, 3), out=torch.zeros(1, 6, 3, device="meta")
            ),
            "found .* on meta",
        ),
        (
            lambda net, rule: lied(net, rule, (1, 3), (0, 5, 5, 0)),
            "false messages: agent 5 sends to agent 5, which is not its neighbour in run 0",
        ),
        (
            lambda net, rule: lied(net, rule, (1, 1), (0, 5, 0, 0)),
            r"false messages: expected shape \[rows, 3\], found \[1, 1\]",
        ),
        (
            lambda net, rule: lied(net, rule, (2, 3), (0, 5, 0, 2)),
            "false messages: expected rows from 0 to 1, found 2",
        ),
    ],
)
@pytest.mark.parametrize("name", ["mean", "median"])
def test_what_cannot_be_exchanged_is_refused(attempt, told, name):
    with pytest.raises(BezoarError, match=told):
        attempt(networks.fan(6), aggregators.create(name))


def lied(network, rule, shape, link):
    """What one false message of some shape does, by a link with these numbers."""
    false = FalseMessages(torch.ones(shape), *map(one, link))
    return Exchange([rule], [network])(Sent(torch.zeros(1, 6, 3), false))


def one(number):
    return torch.tensor([number])


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@each_rule
def test_pieces_on_threads_give_the_same_bits(case, kind):
    """Some agents, or some coordinates, a piece; many pieces a thread."""
    network = case.fit(networks.erdos_renyi(40, 0.2, 4, seed=1))
    sent = torch.randn(3, 40, 60, generator=torch.Generator().manual_seed(2)).to(kind)
    found = []
    tuning = Tuning(dense_advantage=0, piece_bytes=3_000)
    for count in (1, 3):
        pieces = []
        with Workers(count) as workers:

            def watched(work, items, workers=workers, pieces=pieces):
                here = list(items)
                pieces += here
                return workers.map(work, here)

            found.append(exchanged(case.rule(), sent, network, tuning, share=True, map=watched))
        assert len(pieces) > 10
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


@each_rule
def test_shards_are_aggregated_like_the_whole_network(case):
    """Each from the messages of its members and their neighbours."""
    network = case.fit(networks.erdos_renyi(20, 0.3, 2, seed=1))
    sent = torch.randn(1, 20, 60, generator=torch.Generator().manual_seed(2))
    whole = Exchange([case.rule()], [network], tuning=PATHS["gathered"])
    expected, weights = whole(sent, tell=True)
    shares = whole.links.poison_shares(weights)
    owner = np.arange(20) % 3
    for number in range(3):
        shard = shard_of(network, owner, number)
        part = Exchange([case.rule()], [network], shard=shard)
        found, weights = part(sent[:, shard.heard], tell=True)
        torch.testing.assert_close(found, expected[:, shard.members], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(part.links.poison_shares(weights), shares[:, shard.members])


@dataclass(frozen=True)
class Compares(WeightedAggregator):
    """A rule that remembers the origin and gives nothing to it; it may leave its slot out."""

    leaves_out: bool = False
    name = "compares"

    def remembers(self):
        return ("origin",)

    def weights(self, neighbourhood):
        weights = neighbourhood.mask.to(torch.float64)
        weights = weights / weights.sum(-1, keepdim=True)
        return weights[..., :-1] if self.leaves_out else weights


@pytest.mark.parametrize("advantage", [10**9, 0], ids=["dense", "gathered"])
def test_a_rule_may_leave_out_what_it_gives_nothing_to(advantage):
    """Alone, and beside one that does not; and an infinite message stays with its neighbours."""
    network, sent = networks.fan(8), torch.randn(1, 8, 30, dtype=torch.float64)
    sent[0, 2, 3] = torch.inf
    rules = [Compares(), Compares(leaves_out=True), Compares(leaves_out=True), Compares()]
    tuning = Tuning(dense_advantage=advantage)
    together, _ = Exchange(rules, [network] * 4, tuning=tuning)(sent.expand(4, -1, -1))
    alone, _ = Exchange(rules[1:2], [network], tuning=tuning)(sent)
    mean, _ = Exchange([aggregators.create("mean")], [network], tuning=tuning)(sent)
    for models in (*together, alone[0]):
        torch.testing.assert_close(models, mean[0], rtol=0, atol=1e-14, equal_nan=True)


def test_large_numbers_are_finite_though_their_sum_is_not():
    largest = torch.finfo(torch.float32).max
    rows = torch.tensor([[largest, largest], [torch.nan, 1], [1, -torch.inf], [1, 2]])
    found = finite_rows(rows, map, Tuning())
    assert found.tolist() == [True, False, False, True]
