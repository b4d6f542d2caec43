"""The trimmed mean, the median and the total variation penalty."""

import networkx as nx
import numpy as np
import pytest
import torch
from aggregator_inputs import PATHS, Case, apply, assert_close, exchanged
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

from bezoar import Network, networks
from bezoar.aggregators import Median, TotalVariation, TrimmedMean

EVERYTHING = (
    EqualsTheLoop,
    BreaksTiesByIndex,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    SharesSensibly,
    Bounded,
    TakesNaNForInfinity,
    ResolvesConsensus,
    SeesPastAnOutlier,
    FollowsTheMajority,
)


class TestTrimmedMean(*EVERYTHING, AveragesWithoutPoison):
    cases = (Case("trimmed_mean"), Case("trimmed_mean", estimate="max"))
    average = "mean"


class TestTrimmedMeanThatKeepsItsOwn(*EVERYTHING, AveragesWithoutPoison):
    cases = (
        Case("trimmed_mean", keep_own=True),
        Case("trimmed_mean", keep_own=True, estimate="max"),
    )
    average = "mean"

    def is_majority(self, case, network, agent):
        return agent in network.regular and super().is_majority(case, network, agent)


class TestMedian(*EVERYTHING):
    cases = (Case("median"),)


class TestTotalVariation(
    # Not ResolvesConsensus: values that differ by roundings alone are equal.
    EqualsTheLoop,
    BreaksTiesByIndex,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    SharesSensibly,
    Bounded,
):
    cases = (Case("total_variation", strength=0.01),)
    margin = 0.2  # every neighbour may move a coordinate


def test_total_variation_moves_less_in_every_iteration():
    inputs = torch.tensor([[0.0, 1.0], [1.0, -5.0], [torch.nan, 1.0]], dtype=torch.float64)
    rule = TotalVariation(strength=0.5)
    assert rule.at(inputs).tolist() == [1.0, 0.5]
    assert rule.at(inputs, iteration=4).tolist() == [0.5, 0.75]


@pytest.mark.parametrize("where", PATHS)
def test_more_infinite_values_than_are_trimmed(where):
    network = networks.line(5, poisoned=0)
    messages = np.arange(5.0)[:, None] * np.ones((5, 2))
    messages[[1, 3], 0] = np.nan
    inner = networks.complete(5, poisoned=0)
    one_too_many = apply(TrimmedMean(estimate=1), messages, inner, tuning=PATHS[where])
    enough = apply(TrimmedMean(estimate=2), messages, inner, tuning=PATHS[where])
    median = apply(Median(), messages, network, tuning=PATHS[where])
    assert np.isposinf(one_too_many[:, 0]).all()
    assert_close(one_too_many[:, 1], 2.0, 1e-12)
    assert_close(enough, [[4.0, 2.0]] * 5, 1e-12)
    # Of agent 2's three values two are not finite, of agent 0's two values one is not.
    assert np.isposinf(median[:, 0]).tolist() == [True, False, True, False, True]
    assert median[1, 0] == 2.0
    assert median[3, 0] == 4.0


@pytest.mark.parametrize("where", PATHS)
def test_share_counts_the_poisoned_values_that_are_kept(where):
    # Everybody trims one value at each end: agent 4's is kept in the second coordinate only.
    messages = torch.tensor(
        [[0.0, 0.0], [1.0, 1.0], [2.0, 3.0], [3.0, 4.0], [9.0, 2.0]], dtype=torch.float64
    )
    network = networks.complete(5, {4})
    models, share = exchanged(TrimmedMean(), messages, network, PATHS[where], share=True)
    _, of_median = exchanged(Median(), messages, network, PATHS[where], share=True)
    assert torch.allclose(models, torch.tensor([2.0, 2.0], dtype=torch.float64))
    assert torch.allclose(share, torch.tensor((0 + 1 / 3) / 2, dtype=torch.float64))
    assert torch.allclose(of_median, torch.tensor((0 + 1) / 2, dtype=torch.float64))


@pytest.mark.parametrize("where", PATHS)
def test_the_own_value_is_kept_whatever_it_is(where):
    # Agent 0 is below and agent 4 above all others. Of their four neighbours' values two are left.
    messages = torch.tensor([[-9.0], [0.0], [1.0], [2.0], [9.0]], dtype=torch.float64)
    network = networks.complete(5, {4})
    rule = TrimmedMean(keep_own=True)
    models, share = exchanged(rule, messages, network, PATHS[where], share=True)
    expected = [-9 + 1 + 2, 0 + 1 + 2, 1 + 0 + 2, 2 + 0 + 1, 9 + 0 + 1]
    assert_close(3 * models[:, 0], expected, 1e-12)
    # The poisoned value is dropped everywhere but at the agent that holds it.
    assert_close(share, [0, 0, 0, 0, 1 / 3], 1e-7)


@pytest.mark.parametrize("where", PATHS)
def test_the_own_value_alone_is_left_of_the_smallest_neighbourhood(where):
    messages = torch.arange(8.0, dtype=torch.float64).view(4, 2) ** 2
    network = networks.ring(4, {1})
    rule = TrimmedMean(estimate=1, keep_own=True)
    models, share = exchanged(rule, messages, network, PATHS[where], share=True)
    assert torch.equal(models, messages)
    assert share.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("where", PATHS)
@pytest.mark.parametrize("network", [networks.two_castle(10), networks.fan(10)], ids=str)
def test_means_of_float32_values_are_rounded_once(network, where):
    """But plain means, where nothing is dropped, are added up in the messages' type."""
    rng = np.random.default_rng(9)
    messages = rng.normal(size=(network.agents, 3_000)).astype(np.float32)
    for case in (Case("trimmed_mean"), Case("median")):
        expected, _ = case.loop(messages, network)
        found = apply(case.rule(), messages, network, torch.float32, tuning=PATHS[where])
        drops = (network.poisoned_inputs > 0) | (case.name == "median")
        assert np.array_equal(found[drops], expected.astype(np.float32)[drops])
        assert_close(found, expected, 1e-6)


@pytest.mark.parametrize("agents", [9, 14, 20])
def test_large_neighbourhoods_of_different_sizes_sit_together(agents):
    # Large enough that only the ends are sorted; the padding of the smaller ones is at one end.
    graph = nx.complete_graph(agents)
    graph.remove_edges_from([(1, 2), (3, 4), (2, 5)])
    network = Network(graph, {0})
    messages = np.random.default_rng(8).normal(size=(agents, 50))
    case = Case("trimmed_mean")
    expected, _ = case.loop(messages, network)
    assert_close(apply(case.rule(), messages, network), expected, 1e-12)
