"""Estimates of poisoned inputs that are lower where a rule cannot bear so many."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from aggregator_inputs import PATHS, TWO_PATHS, checked, exchanged, situations
from hypothesis import given
from hypothesis import strategies as st

from bezoar import aggregators, networks
from bezoar.aggregators import FABA, IOS, CenteredClipping, ClippedGossip, Krum, TrimmedMean
from bezoar.exchange import Exchange

#: Rules with an estimate: how each is made, and the most that it can bear of ``m`` inputs.
RULES = {
    "trimmed_mean": (TrimmedMean, lambda m: (m - 1) // 2),
    "trimmed_mean keep_own": (lambda e: TrimmedMean(e, keep_own=True), lambda m: (m - 1) // 2),
    "faba": (FABA, lambda m: m - 1),
    "ios": (lambda e: IOS("equal", e, keep_own=True), lambda m: m - 1),
    "krum": (Krum, lambda m: m - 1),
    "clipped_gossip": (lambda e: ClippedGossip("adaptive", estimate=e), lambda m: m - 1),
    "caf": (aggregators.CAF, lambda m: (m - 1) // 2),
    "meamed": (aggregators.MeaMed, lambda m: m - 1),
    "distance_filter": (aggregators.DistanceFilter, lambda m: (m - 1) // 2),
    "bulyan": (aggregators.Bulyan, lambda m: (m - 1) // 4),
    **{
        rule.name: (rule, lambda m: m - 1)
        for rule in (
            aggregators.Nearest,
            aggregators.ClippedSum,
            aggregators.TrimmedSum,
            aggregators.LeastDiameter,
            aggregators.LeastVariance,
            aggregators.LeastEigenvalue,
            aggregators.DivideAndConquer,
        )
    },
}


@dataclass(frozen=True)
class Cautious(FABA):
    """FABA where more than two thirds of the inputs are not poisoned."""

    name: ClassVar[str] = "cautious"

    def inputs_needed(self, estimate):
        return 3 * estimate + 1


def test_every_rule_with_an_estimate_is_here():
    made = {make("exact").name for make, _ in RULES.values()}
    known = aggregators.AGGREGATORS.items()
    assert made == {name for name, rule in known if hasattr(rule, "estimate")}


@pytest.mark.parametrize("path", TWO_PATHS)
@pytest.mark.parametrize("name", RULES)
@checked
@given(situation=situations(batches=((),)), number=st.integers(0, 6))
def test_every_agent_takes_as_many_as_the_rule_can_bear(name, path, situation, number):
    make, most = RULES[name]
    network, rule = situation.network, make(f"up_to_{number}")
    capped = [min(number, most(1 + degree)) for degree in network.degrees.tolist()]
    assert rule.estimates(network).tolist() == capped
    messages = torch.from_numpy(situation.messages)
    whole, _ = exchanged(rule, messages, network, PATHS[path])
    matrix = network.mixing(rule.wiring()[0]).toarray()
    for agent, estimate in enumerate(capped):
        senders = [agent, *network.neighbours(agent)]
        inputs, mixing = messages[senders], matrix[agent, senders]
        told = make("exact").at(inputs, mixing, estimate, senders=senders)
        torch.testing.assert_close(whole[agent], told, rtol=0, atol=1e-9)
        assert torch.equal(rule.at(inputs, mixing, senders=senders), told)


@pytest.mark.parametrize("name", RULES)
@checked
@given(situation=situations(), number=st.integers(0, 3))
def test_a_plain_number_where_all_agents_can_bear_it(name, situation, number):
    make, most = RULES[name]
    network, messages = situation.network, torch.from_numpy(situation.messages)
    number = min(number, most(1 + int(network.degrees.min())))
    assert torch.equal(make(f"up_to_{number}")(messages, network), make(number)(messages, network))


@pytest.mark.parametrize("number", [1, 2, 5, 10**30])
def test_rules_that_bear_different_numbers_side_by_side(number):
    """They have the same wiring, and yet their agents' estimates differ by rule and network."""
    option = f"up_to_{number}"
    kinds = (Cautious, FABA, IOS, Krum, TrimmedMean)
    rules = [kind(estimate=option) for kind in kinds]
    assert len({rule.wiring() for rule in rules}) == 1
    nets = [networks.two_castle(10, 2), networks.fan(10, 1), networks.star(10, {0, 3})]
    runs = [(rule, network) for rule in rules for network in nets]
    rng = np.random.default_rng(number % 97)
    messages = torch.from_numpy(rng.normal(size=(len(runs), 10, 30)))
    together, _ = Exchange(*zip(*runs, strict=True))(messages)
    for (rule, network), sent, found in zip(runs, messages, together, strict=True):
        torch.testing.assert_close(found, rule(sent, network), rtol=0, atol=1e-12)
    leaf = [rule.estimates(nets[2])[1] for rule in rules]
    assert leaf == [0, 1, 1, 1, 0]


@pytest.mark.parametrize("name", RULES)
def test_it_is_possible_on_every_network(name):
    make, _ = RULES[name]
    for network in (networks.line(2, poisoned=0), networks.star(6, {0, 1, 2}), networks.fan(10, 1)):
        make("up_to_3").check(network)


def test_rules_without_an_estimate_take_any():
    rule, inputs = CenteredClipping(), torch.ones(4, 3)
    assert torch.equal(rule.at(inputs, estimate=10**30), rule.at(inputs))
