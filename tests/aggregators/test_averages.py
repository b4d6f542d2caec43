"""The weighted mean, the mean, and no communication."""

import numpy as np
from aggregator_inputs import PATHS, Case, apply, assert_close, random_messages
from aggregator_properties import (
    EqualsTheLoop,
    KeepsConsensus,
    Scales,
    Symmetric,
    Translates,
    WeighsInputs,
)
from aggregator_robustness import ResolvesConsensus, SpreadsBadMessages

from bezoar import networks

EVERYTHING = (
    EqualsTheLoop,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    WeighsInputs,
    ResolvesConsensus,
)


class TestWeightedMean(*EVERYTHING, SpreadsBadMessages):
    cases = (Case("weighted_mean"), Case("weighted_mean", mixing="equal"))

    def test_the_average_over_all_agents_stays(self, case):
        for network in (networks.star(7), networks.fan(9), networks.line(5)):
            messages = random_messages(np.random.default_rng(1), network, (2,))
            found = apply(case.rule(), messages, network)
            assert_close(found.mean(axis=-2), messages.mean(axis=-2), 1e-13)


class TestMean(*EVERYTHING, SpreadsBadMessages):
    cases = (Case("mean"),)


class TestLocal(*EVERYTHING):
    cases = (Case("local"),)

    def test_nothing_is_heard(self, case):
        network = networks.complete(5)
        messages = random_messages(np.random.default_rng(2), network)
        messages[3] = np.nan
        for constants in PATHS.values():
            found = apply(case.rule(), messages, network, tuning=constants)
            others = [0, 1, 2, 4]
            assert np.array_equal(found[others], messages[others])
            assert not np.isfinite(found[3]).any()
