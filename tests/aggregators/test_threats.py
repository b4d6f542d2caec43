"""What rules declare that they withstand, against attacks."""

import numpy as np
import pytest
import torch
from aggregator_inputs import HEAD

from bezoar import aggregators, networks, theory
from bezoar.aggregators import AGGREGATORS, THREATS

OPTIONS = {"lfighter": {"head": HEAD}}

#: Rules that need nothing but messages.
RULES = [name for name in AGGREGATORS if name not in ("ubar", "foolsgold")]

#: How far regular messages are from zero at the most, and how far an output may be.
REGULAR, BOUND = 5.0, 100.0

#: How far poisoned messages go.
FAR = 1e7


def made(name):
    return aggregators.create(name, **OPTIONS.get(name, {}))


def far_away(rng, poisoned, size=6):
    """Directions of poisoned messages: each its own, shared, opposed, axes, hidden behind one."""
    own, shared = rng.normal(size=(poisoned, size)), rng.normal(size=size)
    numbers = np.arange(poisoned)[:, None]
    yield own
    yield np.tile(shared, (poisoned, 1))
    yield (-1.0) ** numbers * shared
    yield np.eye(size)[numbers[:, 0] % size] * (1 + 0.01 * rng.normal(size=(poisoned, 1)))
    yield own * 10.0**-numbers


def outputs(rule, messages, network):
    return rule(torch.from_numpy(messages), network)[list(network.regular)]


def worst_output(name, agents, poisoned, seeds):
    """The largest number in a regular agent's output, over many attacks."""
    network = networks.complete(agents, set(range(agents - poisoned, agents)))
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for directions in far_away(rng, poisoned):
            messages = rng.normal(size=(agents, 6)).clip(-REGULAR, REGULAR)
            messages[agents - poisoned :] = FAR * directions
            found.append(float(outputs(made(name), messages, network).abs().max()))
    return max(found)


@pytest.mark.parametrize("name", RULES)
def test_messages_of_any_size(name):
    """Rules stay within bounds up to the declared share, and not with any share beyond 0."""
    declared, share = "messages" in made(name).withstands, made(name).breakdown
    assert declared == (share > 0)
    if not declared:
        assert max(worst_output(name, 7, 2, 4), worst_output(name, 12, 3, 4)) > BOUND
        return
    for agents in (7, 13):  # Krum needs two inputs more
        poisoned = max(1, int(share * agents - 2))
        assert worst_output(name, agents, poisoned, 2) < BOUND, agents


@pytest.mark.parametrize("name", RULES)
def test_messages_that_are_not_finite(name):
    network = networks.complete(9, {3, 7})
    messages = np.random.default_rng(1).normal(size=(9, 6))
    messages[3], messages[7, 2] = np.nan, -np.inf
    finite = bool(outputs(made(name), messages, network).isfinite().all())
    assert finite == ("non_finite" in made(name).withstands)


@pytest.mark.parametrize("name", [name for name in RULES if name not in OPTIONS])
def test_majority_dominance(name):
    found = theory.check_majority_dominance(made(name), cases=64)
    assert found.holds == made(name).majority_dominant, str(found)


def test_every_rule_declares_what_it_withstands():
    for name, rule in AGGREGATORS.items():
        assert set(rule.withstands) <= set(THREATS), name
        assert "labels" in rule.withstands, name
        assert rule.majority_dominant is not None, name
    composed = aggregators.create("nnm+mean")
    assert not composed.withstands
    assert composed.breakdown is composed.majority_dominant is None
