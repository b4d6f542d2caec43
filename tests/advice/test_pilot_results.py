import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bezoar import networks
from bezoar.advice._pilot_results import HOPELESS, TIE, PilotResults
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
def test_the_first_has_the_least_worst_regret_or_a_tie_and_then_the_least_mean(accuracy):
    ranking = results(accuracy).ranking()
    least = min(rule.regret_worst for rule in ranking)
    tied = [rule for rule in ranking if rule.regret_worst <= least + TIE]
    assert ranking[0] in tied
    assert ranking[0].regret_mean == min(rule.regret_mean for rule in tied)
    assert sorted(str(rule.aggregator) for rule in ranking) == sorted(RULES)


@given(accuracies, st.permutations(range(4)))
def test_the_order_of_scenarios_does_not_matter(accuracy, order):
    one, other = results(accuracy).ranking(), results(accuracy[:, order]).ranking()
    assert np.allclose(
        [(rule.regret_worst, rule.regret_mean) for rule in one],
        [(rule.regret_worst, rule.regret_mean) for rule in other],
    )


@given(accuracies)
def test_no_rule_is_dropped_that_is_near_the_first(accuracy):
    found = results(accuracy)
    kept = found.hopeful()
    worst = found.regret.max(axis=1)
    for text, regret in zip(RULES, worst, strict=True):
        assert text in kept or regret > worst.min() + HOPELESS


def test_a_dropped_rule_comes_after_those_that_were_not():
    accuracy = np.array([[0.5], [0.9], [0.8], [0.1], [0.7]])
    found = results(accuracy)
    kept = {name: rule for name, rule in RULES.items() if name != "median"}
    # The rule that led so far is dropped, and may not win by the scenarios that it was spared.
    found = found.and_these(kept, scenarios(1), np.full((4, 1), 0.5), 10)
    assert [str(rule.aggregator) for rule in found.ranking()][-1] == "median"
    assert np.isnan(found.of(found.accuracy, RULES["median"])[1])
