"""Krum."""

import numpy as np
import pytest
from aggregator_inputs import PATHS, Case, apply
from aggregator_properties import (
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
    LeavesOutBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
    SurvivesMostlyBadMessages,
)

from bezoar import networks
from bezoar.aggregators import Krum


class TestKrum(
    EqualsTheLoop,
    BreaksTiesByIndex,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    WeighsInputs,
    Bounded,
    LeavesOutBadMessages,
    SurvivesMostlyBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
):
    cases = (Case("krum"), Case("krum", estimate="max"))

    def expected_of_rest(self, case, messages, network, bad):
        # With Q = 0 everyone's N̄ - 2 nearest include a bad message as soon as there are two;
        # then all finite inputs score alike, and the lowest agent's is returned.
        rest = [v for v in range(network.agents) if v not in bad]
        if len(bad) == 1:
            far_away = np.where(np.isnan(messages), 1e50, messages)
            return case.loop(far_away, network)[0]
        return np.tile(messages[rest[0]], (network.agents, 1))


@pytest.mark.parametrize("where", PATHS)
def test_returns_an_input_as_it_is(where):
    messages = np.random.default_rng(4).normal(size=(10, 5))
    network = networks.two_castle(10)
    found = apply(Krum(), messages, network, tuning=PATHS[where])
    for agent, model in enumerate(found):
        heard = messages[list(network.closed_neighbourhood(agent))]
        assert (np.abs(heard - model).max(axis=1) <= 1e-15).any()


@pytest.mark.parametrize("where", PATHS)
def test_ties_go_to_the_lowest_agent_even_where_another_sits_first(where):
    # Agents 1 and 3 are each other's nearest: equal scores; at agent 3 its own model comes first.
    messages = np.array([[9.0], [1.0], [5.0], [1.5]])
    found = apply(Krum(estimate=1), messages, networks.complete(4, poisoned=0), tuning=PATHS[where])
    assert found.ravel().tolist() == [1.0] * 4
