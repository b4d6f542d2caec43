"""The rules beyond the paper's."""

import numpy as np
import pytest
from aggregator_inputs import PATHS, Case, apply, assert_close, random_messages
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
    CountsBadMessages,
    FollowsTheMajority,
    IgnoresBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
)

from bezoar import BezoarError, aggregators, networks

EVERYTHING = (
    EqualsTheLoop,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    AveragesWithoutPoison,
    WeighsInputs,
    ResolvesConsensus,
    SeesPastAnOutlier,
)


class TestNearest(*EVERYTHING, BreaksTiesByIndex, Bounded, IgnoresBadMessages):
    cases = (Case("nearest"),)
    average = "mean"


class TestClippedSum(*EVERYTHING, BreaksTiesByIndex, Bounded, IgnoresBadMessages):
    cases = (Case("clipped_sum"), Case("clipped_sum", mixing="equal", rate=0.5))
    average = "weighted_mean"

    def test_without_poisoned_inputs(self, case):
        if case.options.get("rate", 1) == 1:
            super().test_without_poisoned_inputs(case)


class TestTrimmedSum(*EVERYTHING, BreaksTiesByIndex, Bounded, IgnoresBadMessages):
    cases = (Case("trimmed_sum", mixing="equal"),)
    average = "weighted_mean"


class TestAdaptiveClippedGossip(*EVERYTHING, BreaksTiesByIndex, IgnoresBadMessages):
    cases = (Case("clipped_gossip", threshold="adaptive"),)
    average = "weighted_mean"


class TestMultiKrum(
    EqualsTheLoop,
    BreaksTiesByIndex,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    WeighsInputs,
    Bounded,
    ResolvesConsensus,
    SeesPastAnOutlier,
):
    cases = (Case("krum", keep="most"),)


class TestLeastDiameter(
    *EVERYTHING, BreaksTiesByIndex, Bounded, CountsBadMessages, FollowsTheMajority
):
    cases = (Case("least_diameter"),)
    average = "mean"


class TestLeastVariance(
    *EVERYTHING, BreaksTiesByIndex, Bounded, CountsBadMessages, FollowsTheMajority
):
    cases = (Case("least_variance", estimate="max"),)
    average = "mean"


class TestLeastEigenvalue(*EVERYTHING, Bounded, CountsBadMessages, FollowsTheMajority):
    cases = (Case("least_eigenvalue"),)
    average = "mean"


class TestDivideAndConquer(*EVERYTHING, Bounded, CountsBadMessages):
    cases = (Case("divide_and_conquer"),)
    average = "mean"


class TestCAF(*EVERYTHING, CountsBadMessages):
    cases = (Case("caf"),)
    average = "mean"


class TestDistanceFilter(*EVERYTHING, BreaksTiesByIndex, Bounded):
    cases = (Case("distance_filter"),)
    average = "mean"


class TestDistanceFilterAndBadMessages(CountsBadMessages):
    cases = (Case("distance_filter"),)

    def expected(self, case, messages, network, bad):
        models, told = super().expected(case, messages, network, bad)
        return models, [v for v in told if v != bad]


class TestDivideAndConquerThatDropsLess(EqualsTheLoop, Symmetric):
    cases = (Case("divide_and_conquer", factor=0.5),)


@pytest.mark.parametrize(
    ("factor", "estimate", "dropped"), [(1.16, 25, 29), (1.06, 50, 53), (2.1, 30, 63)]
)
def test_as_many_are_dropped_as_are_asked_for(factor, estimate, dropped):
    rule = aggregators.DivideAndConquer(factor=factor, estimate=estimate)
    inputs = np.arange(dropped + 1.0)[:, None]
    assert rule.at(inputs).isfinite().all()
    with pytest.raises(BezoarError, match=f"impossible with {dropped} inputs"):
        rule.at(inputs[1:])


def test_weight_is_taken_away_until_just_enough_is_left():
    # The first round leaves half of the weight of four inputs, which add up to 6 - 2 · 2.
    along = np.array([-2, 2, np.sqrt(2), np.sqrt(2), -np.sqrt(2), -np.sqrt(2)]) / 4
    rng = np.random.default_rng(5)
    for _ in range(50):
        turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        across = 0.01 * rng.normal(size=(6, 2))
        across -= across.mean(axis=0) + np.outer(along, along @ across)
        inputs = np.column_stack([4 * along, across]) @ turned
        assert_close(aggregators.CAF(estimate=2).at(inputs), inputs.mean(axis=0), 1e-12)


@pytest.mark.parametrize("name", ["least_diameter", "least_variance", "least_eigenvalue"])
@pytest.mark.parametrize("agents", [12, 13, 19])
def test_sets_of_many_inputs(name, agents):
    network = networks.complete(agents, 3)
    messages = random_messages(np.random.default_rng(agents), network)
    case = Case(name)
    expected, _ = case.loop(messages, network)
    for constants in PATHS.values():
        assert_close(apply(case.rule(), messages, network, tuning=constants), expected, 1e-9)


def test_a_rule_that_clips_by_its_inputs_needs_an_estimate_and_one_with_a_threshold_does_not():
    inputs = np.random.default_rng(0).normal(size=(4, 3))
    mixing = [0.25] * 4
    assert aggregators.create("clipped_gossip").at(inputs, mixing).shape == (3,)
    with pytest.raises(BezoarError, match="estimate: clipped_gossip needs the number"):
        aggregators.create("clipped_gossip", threshold="adaptive").at(inputs, mixing)
