"""The weighted mean's learning error follows δ², that of the robust rules δ_max."""

import numpy as np
import pytest

from bezoar import BezoarError, paper, theory


@pytest.fixture(scope="module")
def study():
    return paper.contamination_study(("weighted_mean", "faba"), workers=1)


def errors(found, rule):
    return np.array([entry.error for entry in found if entry.rule == rule])


def slope(rates, values):
    return np.polyfit(np.log(rates), np.log(values), 1)[0]


def test_along_the_local_rate(study):
    found = study.by_delta_max
    rates = [entry.delta_max for entry in found if entry.rule == "faba"]
    assert rates == sorted(rates)
    assert len({entry.delta for entry in found}) == 1
    mean, robust = errors(found, "weighted_mean"), errors(found, "faba")
    assert mean.max() / mean.min() < 1.1  # the topology moves it by the step size alone
    np.testing.assert_allclose(mean, 0.25**2, rtol=0.1)
    assert (np.diff(robust) > 0).all()
    expected = [(rate / (1 - rate)) ** 2 for rate in rates]
    np.testing.assert_allclose(robust, expected, rtol=0.01)
    # On the densest network the robust rule is ahead, on the sparsest the weighted mean.
    assert robust[0] < mean[0]
    assert robust[-1] > mean[-1]


def test_along_the_global_rate(study):
    found = study.by_delta
    rates = [entry.delta for entry in found if entry.rule == "faba"]
    assert rates == sorted(rates)
    assert len({entry.delta_max for entry in found}) == 1
    mean, robust = errors(found, "weighted_mean"), errors(found, "faba")
    assert slope(rates, mean) == pytest.approx(2, abs=0.1)
    np.testing.assert_allclose(robust, robust[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("regular", "poisoned", "heard"),
    [(45, 15, 3), (45, 15, 45), (45, 5, 9), (45, 3, 15), (4, 2, 4), (2, 1, 2)],
)
def test_the_networks(regular, poisoned, heard):
    network = paper.block_network(regular, poisoned, heard)
    rates = theory.contamination(network)
    assert rates.delta == pytest.approx(poisoned / (regular + poisoned))
    assert rates.delta_max == pytest.approx(1 / (heard + 1))
    agents = list(network.regular)
    assert (network.poisoned_inputs[agents] == 1).all()
    assert (network.degrees[agents] == heard).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"poisoned": 7}, "poisoned: expected a divisor of 45, found 7"),
        ({"heard": 4}, "heard: expected a divisor of 45, found 4"),
        ({"heard": 1}, "heard: expected an odd number from 3"),
        ({"poisoned": 3, "heard": 9}, "poisoned: expected at least 5 for 9 inputs, found 3"),
    ],
)
def test_networks_that_cannot_be_are_refused(options, message):
    with pytest.raises(BezoarError, match=message):
        paper.block_network(**options)
