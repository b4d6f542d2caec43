"""What an agent's rule works with when some of its neighbours are missing."""

import numpy as np
import pytest

from bezoar import aggregators, networks
from bezoar.agents._exchange import estimate_of, mixing_of

NETWORK = networks.complete(agents=6, poisoned=2)  # 4 and 5 are poisoned
EVERYBODY = (1, 2, 3, 4, 5)


@pytest.mark.parametrize("mixing", ["metropolis", "equal"])
def test_weights_of_the_missing_go_to_the_own_model(mixing):
    row = NETWORK.mixing(mixing).toarray()[0]
    whole = mixing_of(row, 0, EVERYBODY)
    np.testing.assert_array_equal(whole, row)
    some = mixing_of(row, 0, (2, 5))
    np.testing.assert_allclose(some[1:], whole[[2, 5]])
    assert some.sum() == pytest.approx(1)
    assert mixing_of(row, 0, ()).tolist() == pytest.approx([1])


def test_the_exact_number_of_poisoned_inputs_counts_those_that_are_heard():
    rule = aggregators.create("ios", estimate="exact")
    assert estimate_of(rule, NETWORK, 0, EVERYBODY) == 2
    assert estimate_of(rule, NETWORK, 0, (1, 2, 5)) == 1
    assert estimate_of(rule, NETWORK, 0, (1, 2)) == 0


def test_an_assumed_number_falls_only_where_the_rule_cannot_bear_it():
    rule = aggregators.create("trimmed_mean", estimate=2)  # needs five inputs for two
    assert estimate_of(rule, NETWORK, 0, EVERYBODY) == 2
    assert estimate_of(rule, NETWORK, 0, (1, 2, 3, 4)) == 2
    assert estimate_of(rule, NETWORK, 0, (1, 2, 3)) == 1
    assert estimate_of(rule, NETWORK, 0, (1,)) == 0
    assert estimate_of(aggregators.create("mean"), NETWORK, 0, EVERYBODY) is None


@pytest.mark.parametrize("rule", aggregators.AGGREGATORS)
def test_with_everybody_heard_nothing_changes(rule):
    fewer = {"estimate": "up_to_1"} if rule == "bulyan" else {}  # it needs four inputs for one
    made = aggregators.create(rule, **fewer)
    for agent in range(NETWORK.agents):
        heard = NETWORK.neighbours(agent)
        expected = int(made.estimates(NETWORK)[agent]) if made.uses_estimate() else None
        assert estimate_of(made, NETWORK, agent, heard) == expected
