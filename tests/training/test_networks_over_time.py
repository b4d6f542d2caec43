"""Networks that change from iteration to iteration: which is used when, and what is refused."""

import pytest
from setting import FAN, TWO_CASTLE, final_models, then

from bezoar import BezoarError, aggregators, attacks, networks
from bezoar.training import Run

ATTACK = attacks.LabelFlip()


def test_networks_in_turn_begin_with_the_first(problem, workers):
    setting = problem(iterations=1, every=1, metrics=())
    rule = aggregators.WeightedMean()
    one, other, turns, swapped, by_function = final_models(
        setting,
        workers,
        Run(TWO_CASTLE, rule, ATTACK),
        Run(FAN, rule, ATTACK),
        Run([TWO_CASTLE, FAN], rule, ATTACK),
        Run([FAN, TWO_CASTLE], rule, ATTACK),
        Run(lambda iteration: {1: FAN}[iteration], rule, ATTACK),
    )
    assert turns.tobytes() == one.tobytes()
    assert swapped.tobytes() == other.tobytes()
    assert by_function.tobytes() == other.tobytes()
    assert one.tobytes() != other.tobytes()


def test_the_poisoned_agents_may_not_change():
    match = (
        r"network: expected 10 agents with \[4, 5\] poisoned in every iteration, found 10 with "
        r"\[4\] in iteration 2"
    )
    with pytest.raises(BezoarError, match=match):
        Run([TWO_CASTLE, FAN.with_poisoned({4})], aggregators.Mean(), ATTACK)


def test_the_number_of_agents_may_not_change():
    match = r"expected 10 agents .*, found 12 with \[5, 6\] in iteration 3"
    with pytest.raises(BezoarError, match=match):
        Run([TWO_CASTLE, FAN, networks.two_castle(12, 2)], aggregators.Mean(), ATTACK)


def test_what_a_function_gives_is_checked_when_it_is_asked(problem, workers):
    run = Run(then(TWO_CASTLE, FAN.with_poisoned({5})), aggregators.Mean(), ATTACK)
    with pytest.raises(BezoarError, match=r"found 10 with \[5\] in iteration 2"):
        problem(iterations=4, every=2).engine([run], workers).train()
    run = Run(then(TWO_CASTLE, "fan"), aggregators.Mean(), ATTACK)
    with pytest.raises(BezoarError, match="expected a Network in iteration 2, found 'fan'"):
        problem(iterations=4, every=2).engine([run], workers).train()


def test_no_network_is_no_network():
    with pytest.raises(BezoarError, match=r"network: .* needs at least one, found none"):
        Run([], aggregators.Mean(), ATTACK)


def test_a_rule_must_be_possible_on_every_network(problem, workers):
    """It is refused before anything is trained, not when its turn comes."""
    turns = [TWO_CASTLE, networks.ring(10, TWO_CASTLE.poisoned)]
    run = Run(turns, aggregators.TrimmedMean(), ATTACK)
    with pytest.raises(BezoarError, match="trimmed_mean: impossible at agent 4 of the ring"):
        problem(iterations=4, every=2).engine([run], workers)
