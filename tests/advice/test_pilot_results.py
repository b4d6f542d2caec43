import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bezoar import networks
from bezoar.advice._pilot_results import STUDY_COUNTS, PilotResults
from bezoar.advice._scenarios import Scenario
from bezoar.experiments import read_choice

RULES = {
    name: read_choice("aggregator", name) for name in ("mean", "median", "rfa", "local", "krum")
}
accuracies = arrays(np.float64, (len(RULES), 4), elements=st.floats(0, 1, width=16))


def scenarios(count):
    network = networks.ring(agents=5).with_poisoned([0])
    return [Scenario(network, "random", "iid", "label_flip", seed) for seed in range(count)]


def results(accuracy):
    none = PilotResults.none_yet(RULES)
    return none.and_these(RULES, scenarios(accuracy.shape[1]), accuracy, 10)


@given(accuracies)
def test_the_best_rule_of_a_scenario_regrets_nothing(accuracy):
    regret = results(accuracy).regret
    assert (regret.min(axis=0) == 0).all()
    assert np.allclose(accuracy + regret, accuracy.max(axis=0))


@given(accuracies)
def test_the_first_has_the_least_root_mean_square_loss(accuracy):
    found = results(accuracy)
    ranking = found.ranking()
    risks = np.sqrt(np.square(found.regret).mean(axis=1))
    assert np.allclose([rule.risk for rule in ranking], np.sort(risks))
    assert all(rule.regret_mean <= rule.risk + 1e-9 for rule in ranking)
    assert all(rule.risk <= rule.regret_worst + 1e-9 for rule in ranking)
    assert sorted(str(rule.aggregator) for rule in ranking) == sorted(RULES)


@given(accuracies, st.sampled_from(list(RULES)), st.floats(0, 1, width=16))
def test_a_study_counts_as_so_many_scenarios_more(accuracy, name, lost):
    found = results(accuracy)
    known = {str(rule.aggregator): rule.risk for rule in found.ranking({name: lost})}
    alone = {str(rule.aggregator): rule.risk for rule in found.ranking()}
    squares = 4 * alone[name] ** 2 + STUDY_COUNTS * lost**2
    assert np.isclose(known[name], np.sqrt(squares / (4 + STUDY_COUNTS)))
    assert all(known[other] == alone[other] for other in RULES if other != name)


@given(accuracies, st.permutations(range(4)))
def test_the_order_of_scenarios_does_not_matter(accuracy, order):
    one, other = results(accuracy).ranking(), results(accuracy[:, order]).ranking()
    assert np.allclose(
        [(rule.risk, rule.regret_worst) for rule in one],
        [(rule.risk, rule.regret_worst) for rule in other],
    )


@given(accuracies, st.integers(1, len(RULES)))
def test_the_first_of_the_ranking_go_on(accuracy, most):
    found = results(accuracy)
    first = [str(rule.aggregator) for rule in found.ranking()][:most]
    assert sorted(found.hopeful(most)) == sorted(first)


def test_a_dropped_rule_comes_after_those_that_were_not():
    accuracy = np.array([[0.5], [0.9], [0.8], [0.1], [0.7]])
    found = results(accuracy)
    kept = {name: rule for name, rule in RULES.items() if name != "median"}
    # The rule that led so far is dropped, and may not win by the scenarios that it was spared.
    found = found.and_these(kept, scenarios(1), np.full((4, 1), 0.5), 10)
    assert [str(rule.aggregator) for rule in found.ranking()][-1] == "median"
    assert np.isnan(found.of(found.accuracy, RULES["median"])[1])
    assert "median" not in found.hopeful(len(RULES))
