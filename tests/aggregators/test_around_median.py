"""MeaMed and Bulyan: the mean of the values closest to the median."""

import numpy as np
import pytest
import torch
from aggregator_inputs import PATHS, Case, apply, assert_close, exchanged, random_messages
from aggregator_properties import (
    AveragesWithoutPoison,
    BreaksTiesByIndex,
    EqualsTheLoop,
    KeepsConsensus,
    Scales,
    SharesSensibly,
    Symmetric,
    Translates,
)
from aggregator_robustness import (
    Bounded,
    FollowsTheMajority,
    ResolvesConsensus,
    SeesPastAnOutlier,
    TakesNaNForInfinity,
)

from bezoar import networks
from bezoar.aggregators import Bulyan, MeaMed

EVERYTHING = (
    EqualsTheLoop,
    BreaksTiesByIndex,
    Scales,
    Translates,
    AveragesWithoutPoison,
    SharesSensibly,
    Bounded,
    ResolvesConsensus,
)


class TestMeaMed(
    *EVERYTHING,
    Symmetric,
    KeepsConsensus,
    TakesNaNForInfinity,
    SeesPastAnOutlier,
    FollowsTheMajority,
):
    cases = (Case("meamed"),)
    average = "mean"


class TestBulyan(*EVERYTHING):
    # Not Symmetric: of few inputs two that are nearest to each other tie, and the lowest is picked.
    cases = (Case("bulyan"),)
    average = "mean"


class TestBehindMixing(EqualsTheLoop):
    cases = (Case("nnm+bulyan"),)


@pytest.mark.parametrize("where", PATHS)
def test_equally_close_values_on_either_side_count_half_each(where):
    # The median is 0; one of -1 and 1 goes. Of two values one is left: their mean.
    messages = torch.tensor([[-1.0, 3.0], [0.0, 3.0], [1.0, 5.0]], dtype=torch.float64)
    rule, network = MeaMed(estimate=1), networks.complete(3, {2})
    models, share = exchanged(rule, messages, network, PATHS[where], share=True)
    assert_close(models, [[0.0, 3.0]] * 3, 1e-15)
    assert_close(share, [(1 / 3 + 0) / 2] * 3, 1e-7)
    pair = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    assert MeaMed().at(pair, estimate=1).item() == 1.5


@pytest.mark.parametrize("where", PATHS)
def test_bulyan_without_what_krum_picks_last(where):
    """A bad message is not among those picked, whatever it says; nor is anything said of it."""
    network = networks.complete(7, {4})
    messages = random_messages(np.random.default_rng(1), network)
    found = []
    for value in (1e6, np.nan, -np.inf):
        messages[4] = value
        sent = torch.from_numpy(messages)
        models, share = exchanged(Bulyan(), sent, network, PATHS[where], share=True)
        assert float(share.abs().max()) == 0
        found.append(models)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("away", [0.0, 1e-3, 1e9])
def test_bulyan_follows_a_unanimous_majority(away):
    rng = np.random.default_rng(3)
    for network in (networks.two_castle(10), networks.complete(11, 2)):
        messages = np.tile(rng.normal(size=5), (network.agents, 1))
        expected = messages.copy()
        messages[list(network.poisoned)] += away * rng.normal(size=(len(network.poisoned), 5))
        for constants in PATHS.values():
            assert_close(apply(Bulyan(), messages, network, tuning=constants), expected, 1e-14)


def test_bulyan_needs_four_inputs_for_each_poisoned_one():
    messages = np.random.default_rng(2).normal(size=(9, 4))
    assert apply(Bulyan(estimate=2), messages, networks.complete(9, 0)).shape == (9, 4)
    rule = Bulyan(estimate="up_to_2")
    assert rule.estimates(networks.complete(8, 0)).tolist() == [1] * 8
