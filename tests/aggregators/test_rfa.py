"""RFA."""

import aggregator_reference as reference
import numpy as np
import pytest
from aggregator_inputs import Case, apply, assert_close, checked, situations
from aggregator_properties import (
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
    SurvivesMostlyBadMessages,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bezoar import networks
from bezoar.aggregators import RFA


class TestRFA(
    EqualsTheLoop,
    Symmetric,
    Scales,
    Translates,
    KeepsConsensus,
    WeighsInputs,
    Bounded,
    FollowsTheMajority,
    LeavesOutBadMessages,
    SurvivesMostlyBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
):
    cases = (Case("rfa"),)
    # One outlier among three inputs can pull the median 2 (3-1)/(3-2) = 4 radii away.
    margin = 4 * 8.0


@checked
@given(situation=situations(batches=[()]))
def test_no_place_has_a_smaller_sum_of_distances(situation):
    network, messages = situation.network, situation.messages
    found = apply(RFA(), messages, network)
    for agent, model in enumerate(found):
        points = messages[list(network.closed_neighbourhood(agent))]
        best = reference.sum_of_distances(points, reference.geometric_median(points))
        assert reference.sum_of_distances(points, model) <= best * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("spread", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("inputs", [4, 6, 8])
def test_half_of_the_inputs_near_each_other(inputs, spread, seed):
    """Near such a cluster Newton's steps are too long and Weiszfeld's too short."""
    rng = np.random.default_rng(seed)
    messages = rng.normal(size=(inputs, 3))
    messages[: inputs // 2] *= spread
    messages[inputs // 2 :] *= 3 / np.linalg.norm(messages[inputs // 2 :], axis=1, keepdims=True)
    network = networks.complete(inputs)
    found = [
        reference.sum_of_distances(messages, apply(rule, messages, network)[0])
        for rule in (RFA(), RFA(iterations=100), RFA(tolerance=1e-12, smoothing=1e-10))
    ]
    assert max(found) <= min(found) * (1 + 1e-5)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_a_farther_outlier_pulls_no_harder(size):
    # The pull of an outlier depends on its direction alone once it is far away.
    rng = np.random.default_rng(9)
    messages = rng.normal(size=(6, 4))
    messages[5] = 1e4 * np.ones(4)
    near = apply(RFA(), messages, networks.complete(6, {5}))
    messages[5] *= size
    assert_close(apply(RFA(), messages, networks.complete(6, {5})), near, 1e-3)


def test_more_smoothing_moves_the_median_towards_the_mean():
    messages = np.array([[0.0], [1.0], [5.0]])
    network = networks.complete(3)
    exact = apply(RFA(), messages, network)
    smooth = apply(RFA(smoothing=10.0), messages, network)
    assert_close(exact, [[1.0]] * 3, 1e-5)
    assert_close(smooth, [[2.0]] * 3, 1e-9)


@checked
@given(
    corners=arrays(np.float64, (3, 4), elements=st.floats(-1, 1, width=32)),
    needle=st.sampled_from([1.0, 1e-2, 1e-4, 1e-6]),
)
def test_three_inputs(corners, needle):
    """Whether by formula or by iteration: at the median the pulls of the inputs cancel."""
    corners[2] = corners[1] + needle * (corners[2] - corners[1])
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    assume(sides.min() > 1e-7)
    model = apply(RFA(), corners[[1, 0, 2]], networks.line(3, poisoned=()))[1]
    best = reference.sum_of_distances(corners, reference.geometric_median(corners))
    at_corner = min(reference.sum_of_distances(corners, corner) for corner in corners)
    found = reference.sum_of_distances(corners, model)
    assert found <= min(best, at_corner) * (1 + 1e-6)


@pytest.mark.parametrize("copies", range(1, 9))
def test_of_two_places_with_as_many_inputs_the_middle_is_meant(copies):
    """Everything between is a median; Weiszfeld's iteration stays at the mean."""
    for places in np.random.default_rng(copies).normal(size=(20, 2, 7)):
        assert_close(RFA().at(np.repeat(places, copies, axis=0)), places.mean(axis=0), 1e-6)


def test_a_triangle_has_its_fermat_point():
    """From there every corner is seen at 120° from the others; the mean would be at (0, 1)."""
    corners = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    found = apply(RFA(), corners, networks.line(3, poisoned=()))[1]
    assert np.allclose(found, [0, 1 / np.sqrt(3)], rtol=1e-12, atol=1e-12)
