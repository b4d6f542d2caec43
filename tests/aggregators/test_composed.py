"""Rules behind something that is done to their inputs before, and BALANCE."""

import numpy as np
import pytest
import torch
from aggregator_inputs import (
    TWO_PATHS,
    Case,
    apply,
    assert_close,
    exchanged,
    random_messages,
    random_network,
)
from aggregator_properties import (
    EqualsTheLoop,
    KeepsConsensus,
    Scales,
    Symmetric,
    Translates,
    WeighsInputs,
)
from aggregator_robustness import IgnoresBadMessages, ResolvesConsensus

from bezoar import BezoarError, aggregators, networks
from bezoar.exchange import Exchange, Sent
from bezoar.experiments import read_choice


class TestNearestNeighbourMixing(
    EqualsTheLoop, Symmetric, Translates, KeepsConsensus, WeighsInputs, ResolvesConsensus
):
    cases = (Case("nnm+krum"), Case("nnm+ios", mixing="equal"))


class TestMixingBeforeSorting(EqualsTheLoop, Symmetric, Translates, KeepsConsensus):
    cases = (Case("nnm+trimmed_mean"), Case("arc+median"))


class TestAdaptiveClipping(EqualsTheLoop, Symmetric, Scales, Translates, KeepsConsensus):
    cases = (Case("arc+mean"), Case("arc+faba"), Case("nnm+arc+mean"))


class TestBalance(EqualsTheLoop, Symmetric, Scales, KeepsConsensus, WeighsInputs):
    cases = (Case("balance", reach=1.2), Case("balance", reach=1.0, own=0.2))


class TestBalanceAndBadMessages(IgnoresBadMessages):
    cases = (Case("balance", reach=1.2),)


def test_fewer_are_accepted_as_training_goes_on():
    network, rule = networks.complete(12), aggregators.create("balance", reach=2.0, decay=3.0)
    messages = torch.from_numpy(random_messages(np.random.default_rng(1), network)).unsqueeze(0)
    exchange = Exchange([rule], [network])
    accepted = []
    for progress in (0.0, 0.2, 0.5, 1.0):
        _, weights = exchange(Sent(messages, iteration=1, progress=progress), tell=True)
        accepted.append(int((weights > 0).sum()))
    assert accepted == sorted(accepted, reverse=True)
    assert accepted[0] > accepted[-1]


@pytest.mark.parametrize("agents", [8, 9])
def test_buckets(agents):
    network, rule = networks.complete(agents), aggregators.create("bucketing+median")
    messages = torch.from_numpy(random_messages(np.random.default_rng(2), network)).unsqueeze(0)
    exchange = Exchange([aggregators.create("bucketing+mean")], [network])
    found = set()
    for iteration in (1, 2, 3):
        _, [weights] = exchange(Sent(messages, iteration=iteration), tell=True)
        each = weights[: agents * agents].view(agents, agents)
        assert torch.allclose(each.sum(1), torch.ones(agents, dtype=torch.float64))
        # Every bucket counts as much, so an input alone in one counts for two.
        buckets, alone = -(-agents // 2), agents % 2
        shares = sorted(each[0].tolist())
        expected = [1 / (2 * buckets)] * (agents - alone) + [1 / buckets] * alone
        np.testing.assert_allclose(shares, expected)
        [models], _ = Exchange([rule], [network])(Sent(messages, iteration=iteration))
        found.add(tuple(models[0].tolist()))
    assert len(found) == 3


def test_the_own_message_stays_in_front():
    """What clips around the own message clips around the bucket that it is in."""
    network = random_network(np.random.default_rng(3), 9, 0.5)
    messages = torch.from_numpy(random_messages(np.random.default_rng(4), network))
    rule = aggregators.create("bucketing+local", bucket=1)
    assert torch.equal(exchanged(rule, messages, network)[0], messages)


def test_one_name_however_it_is_spelled():
    typed = read_choice("aggregator", "nnm+trimmed_mean:estimate=1")
    table = {"name": "trimmed_mean", "before": ["nnm"], "estimate": 1}
    assert typed == read_choice("aggregator", table)
    assert str(typed) == "nnm+trimmed_mean:estimate=1"
    assert read_choice("aggregator", typed.make()) == typed
    assert type(typed.make()) is type(aggregators.create("nnm+trimmed_mean"))


def test_the_rule_needs_as_many_inputs_as_are_left():
    messages = np.random.default_rng(0).normal(size=(9, 3))
    rule = aggregators.create("bucketing+trimmed_mean", estimate=2, bucket=2)
    assert apply(rule, messages, networks.complete(9)).shape == (9, 3)
    with pytest.raises(BezoarError, match="impossible at agent 0"):
        rule(messages[:8], networks.complete(8))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nnm+lfighter", "looks at the output layers of the messages themselves"),
        ("nnm+distance_filter", "looks at more of the messages themselves than their inner"),
        ("arc+ubar", "looks at more of the messages themselves than their inner"),
        ("bucketing+bucketing+mean", "bucketing has options .* once; found 2 times"),
        ("nmn+krum", "'nmn' is not known; allowed: nnm, arc, bucketing"),
        ("nnm+crum", "'crum' is not known; allowed: krum"),
    ],
)
def test_refusals(name, told):
    for make in (aggregators.create, lambda name: read_choice("aggregator", name)):
        with pytest.raises(BezoarError, match=told):
            make(name)


@pytest.mark.parametrize("name", ["nnm+median", "nnm+meamed", "nnm+total_variation"])
@pytest.mark.parametrize("coordinate", [0, slice(1, 8)])
def test_mixing_what_is_not_finite_does_not_depend_on_how_it_is_computed(name, coordinate):
    """Rules by coordinates look at the finite coordinates of what it is mixed into."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        network = random_network(rng, 8, 0.6, 3)
        messages = random_messages(rng, network)
        messages[int(rng.integers(8)), coordinate] = np.nan
        rule = aggregators.create(name)
        dense, gathered = (apply(rule, messages, network, tuning=way) for way in TWO_PATHS.values())
        assert_close(gathered, dense, 1e-9)
        for agent in range(8):
            senders = [agent, *network.neighbours(agent)]
            estimate = int(network.poisoned_inputs[agent])
            alone = rule.at(messages[senders], estimate=estimate, senders=senders)
            assert_close(alone, dense[agent], 1e-9)
