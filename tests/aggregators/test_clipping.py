"""Centered clipping and clipped gossip."""

import numpy as np
import pytest
from aggregator_inputs import Case, apply, assert_close, random_messages
from aggregator_properties import (
    AveragesWithoutPoison,
    EqualsTheLoop,
    KeepsConsensus,
    Scales,
    Symmetric,
    Translates,
    WeighsInputs,
)
from aggregator_robustness import (
    Bounded,
    IgnoresBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
)

from bezoar import aggregators, networks

EVERYTHING = (
    EqualsTheLoop,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    WeighsInputs,
    Bounded,
    IgnoresBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
)


class TestCenteredClipping(*EVERYTHING):
    cases = (
        Case("centered_clipping", threshold=2.0),
        Case("centered_clipping", threshold=1.0, steps=4),
    )
    margin = 4.0


class TestClippedGossip(*EVERYTHING):
    cases = (
        Case("clipped_gossip", threshold=2.0),
        Case("clipped_gossip", threshold=2.0, mixing="equal"),
    )
    margin = 2.0


class TestCenteredClippingThatNeverClips(AveragesWithoutPoison):
    cases = (Case("centered_clipping", threshold=1e9), Case("centered_clipping", threshold=np.inf))
    average = "mean"


class TestClippedGossipThatNeverClips(AveragesWithoutPoison):
    cases = (
        Case("clipped_gossip", threshold=1e9),
        Case("clipped_gossip", threshold=np.inf, mixing="equal"),
    )
    average = "weighted_mean"


@pytest.mark.parametrize(("name", "steps"), [("centered_clipping", 5), ("clipped_gossip", 1)])
def test_nobody_moves_farther_than_the_threshold_a_step(name, steps):
    network = networks.two_castle(10)
    messages = 100 * random_messages(np.random.default_rng(3), network)
    options = {"steps": steps} if name == "centered_clipping" else {}
    found = apply(aggregators.create(name, threshold=0.5, **options), messages, network)
    moved = np.linalg.norm(found - messages, axis=-1)
    assert moved.max() <= 0.5 * steps
    assert moved.min() > 0


def test_the_default_threshold_is_the_one_for_softmax_regression():
    messages = np.array([[0.0], [1.0]])
    found = apply(aggregators.create("clipped_gossip"), messages, networks.line(2))
    assert_close(found, [[0.015], [0.985]], 1e-12)
