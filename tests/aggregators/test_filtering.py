"""FABA and IOS."""

import numpy as np
import pytest
import torch
from aggregator_inputs import PATHS, Case, apply, assert_close
from aggregator_properties import (
    AveragesWithoutPoison,
    BreaksTiesByIndex,
    EqualsTheLoop,
    KeepsConsensus,
    Scales,
    Symmetric,
    Translates,
    WeighsInputs,
)
from aggregator_robustness import (
    Bounded,
    FollowsTheMajority,
    LeavesOutBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
)

from bezoar import networks
from bezoar.aggregators import FABA, IOS

EVERYTHING = (
    EqualsTheLoop,
    BreaksTiesByIndex,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    AveragesWithoutPoison,
    WeighsInputs,
    LeavesOutBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
)


class TestFABA(*EVERYTHING, Bounded, FollowsTheMajority):
    cases = (Case("faba"), Case("faba", estimate="max"))
    average = "mean"


class TestIOS(*EVERYTHING, Bounded, FollowsTheMajority):
    cases = (Case("ios"), Case("ios", mixing="equal"), Case("ios", estimate="max"))
    average = "weighted_mean"

    def is_majority(self, case, network, agent):
        mixing = network.mixing(case.options.get("mixing", "metropolis")).toarray()[agent]
        return mixing[list(network.regular)].sum() > 0.5 + 1e-9


class OwnIsNeverDropped:
    def test_own_model_is_never_dropped(self, case):
        # Agent 0 is the farthest: without the option it would go first.
        messages = np.array([[9.0], [0.0], [1.0], [2.0]])
        network = networks.complete(4, {3})
        kept = apply(case.rule(), messages, network)
        dropped = apply(type(case.rule())(), messages, network)
        assert_close(kept[0], [(9 + 1 + 2) / 3], 1e-12)
        assert_close(dropped[0], [(0 + 1 + 2) / 3], 1e-12)
        assert_close(kept[1:], dropped[1:], 1e-12)


class TestFABAThatKeepsItsOwn(*EVERYTHING, Bounded, OwnIsNeverDropped, FollowsTheMajority):
    cases = (Case("faba", keep_own=True), Case("faba", keep_own=True, estimate="max"))
    average = "mean"

    def is_majority(self, case, network, agent):
        return agent in network.regular and super().is_majority(case, network, agent)


class TestIOSThatKeepsItsOwn(*EVERYTHING, Bounded, OwnIsNeverDropped):
    cases = (Case("ios", keep_own=True),)
    average = "weighted_mean"


RULES = pytest.mark.parametrize("rule", [FABA(), IOS()], ids=str)


@RULES
@pytest.mark.parametrize("where", PATHS)
def test_ties_go_to_the_lowest_agent_even_where_another_sits_first(rule, where):
    # For everyone -1 and 1 are equally far from the mean; agents 2 and 3 hold them, and at agent
    # 3 its own model comes first but is not the lowest.
    messages = np.array([[0.0], [0.0], [-1.0], [1.0], [0.0]])
    found = apply(rule, messages, networks.complete(5, {4}), tuning=PATHS[where])
    assert_close(found, np.full((5, 1), 1 / 4), 1e-12)


@RULES
def test_of_two_inputs_the_lowest_goes(rule):
    found = apply(rule, np.array([[5.0], [7.0]]), networks.line(2, {1}))
    assert_close(found, [[7.0], [7.0]], 1e-12)


@pytest.mark.parametrize("rule", [FABA, IOS])
@pytest.mark.parametrize("where", PATHS)
def test_more_bad_messages_than_are_dropped(rule, where):
    # On a line each end's message reaches two agents; agent 2 hears both bad ones.
    network = networks.line(5, poisoned=0)
    messages = np.arange(5.0)[:, None] * np.ones((5, 3))
    messages[[1, 3]] = np.nan
    found = apply(rule(estimate=1), messages, network, tuning=PATHS[where])
    assert np.isfinite(found).all(axis=1).tolist() == [True, True, False, True, True]
    assert_close(found[[0, 4]], messages[[0, 4]], 1e-12)
    assert_close(found[1], messages[[0, 2]].mean(axis=0), 1e-12)


@RULES
def test_a_number_as_estimate_counts_for_everyone(rule):
    messages = torch.tensor([[0.0], [1.0], [10.0], [3.0]], dtype=torch.float64)
    network = networks.complete(4, poisoned=0)
    two = type(rule)(estimate=2)(messages, network)
    assert torch.allclose(two, torch.full((4, 1), 0.5, dtype=torch.float64))
    assert torch.allclose(rule(messages, network), messages.mean())
