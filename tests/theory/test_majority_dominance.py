from itertools import islice

import numpy as np
import pytest
import torch

from bezoar import BezoarError, aggregators, theory
from bezoar.theory._majority import ATTACKS, adversarial_cases

SURVIVORS = [
    ("trimmed_mean", {}),
    ("trimmed_mean", {"estimate": "max"}),
    ("faba", {}),
    ("ios", {}),
    ("ios", {"mixing": "equal"}),
    ("median", {}),
    ("rfa", {}),
]
FALLEN = [
    ("centered_clipping", {}),
    ("centered_clipping", {"steps": 5}),
    ("centered_clipping", {"threshold": 1e-3}),
    ("clipped_gossip", {}),
    ("clipped_gossip", {"mixing": "equal"}),
    ("mean", {}),
    ("weighted_mean", {}),
    ("local", {}),
]


@pytest.mark.parametrize(("name", "options"), SURVIVORS)
@pytest.mark.parametrize("seed", [0, 1])
def test_majority_dominant_rules_survive(name, options, seed):
    found = theory.check_majority_dominance(aggregators.create(name, **options), seed=seed)
    assert found.holds, str(found)
    assert found.survived + found.refused == 200
    assert found.refused == 0 or options.get("estimate") == "max"
    assert f"survived {found.survived} adversarial cases" in str(found)


@pytest.mark.parametrize(("name", "options"), FALLEN)
def test_others_fall_at_once(name, options):
    found = theory.check_majority_dominance(aggregators.create(name, **options))
    assert not found.holds
    assert found.survived == 0


def test_a_users_rule_that_averages_falls_at_once():
    class Halfway(aggregators.WeightedAggregator):
        name = label = "halfway"

        def weights(self, neighbourhood):
            return neighbourhood.mask / neighbourhood.size.unsqueeze(-1).double()

    def average(messages, network):
        return messages.mean(0).expand_as(messages)

    for rule, name in ((Halfway(), "halfway"), (average, "average")):
        found = theory.check_majority_dominance(rule)
        assert (found.rule, found.survived, found.holds) == (name, 0, False)


def test_a_users_rule_that_always_follows_the_majority_survives():
    def plurality(messages, network):
        outputs = messages.clone()
        for agent in range(network.agents):
            inputs = messages[list(network.closed_neighbourhood(agent))]
            values, counts = inputs.unique(dim=0, return_counts=True)
            outputs[agent] = values[counts.argmax()]
        return outputs

    assert theory.check_majority_dominance(plurality).survived == 200


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1, 1e2, 1e6])
def test_a_rule_that_is_fooled_at_one_scale_only_falls(scale):
    median = aggregators.create("median")

    def fooled(messages, network):
        outputs = median(messages, network)
        spread = (messages - outputs).norm(dim=1).max()
        if scale / 20 < spread < scale * 20:
            outputs = outputs + 0.01 * (messages.mean(0) - outputs)
        return outputs

    assert not theory.check_majority_dominance(fooled, cases=400).holds


def test_a_counterexample_is_one_and_prints_readably():
    rule = aggregators.create("centered_clipping")
    found = theory.check_majority_dominance(rule).counterexample
    poisoned = set(found.network.poisoned)
    regular = [source not in poisoned for source in found.sources]
    assert found.sources[0] == found.agent
    assert set(found.sources) == set(found.network.closed_neighbourhood(found.agent))
    assert sum(regular) > len(regular) / 2
    assert (found.inputs[regular] == found.expected).all()
    assert found.distance == pytest.approx(np.linalg.norm(found.found - found.expected))
    text = str(found)
    assert f"agent {found.agent} hears" in text
    assert "poisoned" in text
    assert "expected" in text
    assert f"{found.distance:.6g}" in text
    assert text in str(theory.check_majority_dominance(rule))


def test_every_case_is_one_that_the_definition_covers():
    seen = set()
    for case in islice(adversarial_cases(3), 400):
        network, poisoned = case.network, set(case.network.poisoned)
        seen.add((case.attack, network.name, len(case.majority)))
        assert len(case.agents) > 0
        for agent in network.regular:
            assert (case.messages[agent] == case.majority).all()
        for agent in range(network.agents):
            heard = network.closed_neighbourhood(agent)
            assert 2 * sum(v not in poisoned for v in heard) > len(heard)
        for mixing in ("metropolis", "equal"):
            weight = network.mixing(mixing) @ network.poisoned_mask
            assert (weight[list(case.agents)] < 0.5).all()
    assert {attack for attack, _, _ in seen} == set(ATTACKS)
    assert {size for _, _, size in seen} == {1, 2, 3, 4, 5}


def test_the_same_seed_gives_the_same_cases():
    for one, two in zip(
        islice(adversarial_cases(5), 60), islice(adversarial_cases(5), 60), strict=True
    ):
        assert one.network.edges == two.network.edges
        np.testing.assert_array_equal(one.messages, two.messages)
    other = next(islice(adversarial_cases(6), 60, None))
    assert not np.array_equal(other.messages, next(islice(adversarial_cases(5), 60, None)).messages)


def test_outputs_that_are_not_finite_are_counterexamples():
    found = theory.check_majority_dominance(lambda messages, network: messages * torch.nan)
    assert not found.holds


def test_rules_that_cannot_be_checked():
    with pytest.raises(BezoarError, match=r"rule: it refuses every case.*head"):
        theory.check_majority_dominance(aggregators.create("lfighter"))
    with pytest.raises(BezoarError, match="rule: expected outputs of the shape"):
        theory.check_majority_dominance(lambda messages, network: messages[0])
    with pytest.raises(BezoarError, match=r"rule: expected an aggregator, .* found 'faba'"):
        theory.check_majority_dominance("faba")
    with pytest.raises(BezoarError, match="cases: expected"):
        theory.check_majority_dominance(aggregators.create("mean"), cases=0)
