"""Groups of agents far from each other, whose members agree to many digits.

On a dense network inner products are taken about one reference for all. Seen from there, the
differences within another group drown in rounding, unless the group gets a reference of its own.
"""

from itertools import combinations

import aggregator_reference as reference
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from one_agent import Seen, every_rule, whole_network

from bezoar import Network, aggregators, networks
from bezoar.exchange import is_dense

#: How far apart the members of a group are, when groups have distance 1.
SPREADS = (1e-6, 1e-7, 1e-8, 1e-9)

#: Each test has the ends of that range; one draws any spread.
ENDS = SPREADS[::3]

#: How far a rule's output may be from what the agent would get alone, in units of the largest
#: distance between two of its inputs.
CLOSE = 0.05

SIZE = 6


def cliques(count, bridge=(0, 0), poisoned=(SIZE - 1,)):
    """A line of cliques of six, each joined to the next by one edge.

    Args:
        count: how many.
        bridge: which member of a clique is linked to which member of the next.
        poisoned: which members of every clique are poisoned.
    """
    graph = nx.Graph()
    for first in range(0, count * SIZE, SIZE):
        graph.add_edges_from(combinations(range(first, first + SIZE), 2))
        if first:
            graph.add_edge(first - SIZE + bridge[0], first + bridge[1])
    starts = range(0, count * SIZE, SIZE)
    return Network(graph, [first + member for first in starts for member in poisoned])


def groups(centres, spread, rng):
    """``[W, D]`` six messages around each centre, the last of them farther away.

    Args:
        centres: ``[groups, D]``.
        spread: the distance of most messages to their centre.
        rng: what draws directions.
    """
    messages = np.repeat(centres, SIZE, axis=0)
    away = rng.normal(size=messages.shape)
    away *= spread / np.linalg.norm(away, axis=1, keepdims=True)
    away[SIZE - 1 :: SIZE] *= 5
    return torch.from_numpy(messages + away)


def unit_steps(count, length, rng):
    """``[count, D]`` points in random directions from each other, one at distance 1 to the next."""
    steps = rng.normal(size=(count, length))
    return np.cumsum(steps / np.linalg.norm(steps, axis=1, keepdims=True), axis=0)


def agree(rules, network, messages, previous=None):
    """Every rule gives every agent what it gives the agent alone."""
    assert is_dense(network)
    previous = messages if previous is None else previous
    seen = Seen(network, messages, previous)
    spreads = [seen.spread(agent) for agent in range(network.agents)]
    for rule in rules:
        [whole] = whole_network(rule, [network], messages[None], previous[None])
        for agent, spread in enumerate(spreads):
            apart = (whole[agent] - seen.at(rule, agent)).norm()
            assert apart <= CLOSE * spread, (rule, agent, float(apart / spread))


def rules_at(spread, head=None, estimate="exact"):
    """Every rule, with clipping that is felt within a group."""
    return every_rule(spread / 2, head, estimate)


@pytest.mark.parametrize("spread", ENDS)
@pytest.mark.parametrize("bridge", [(0, 0), (5, 5), (5, 0)], ids=["regular", "poisoned", "both"])
def test_two_groups_of_numbers(spread, bridge):
    """Five agents agree and one deviates, at 0 in one group and at 1 in the other."""
    messages = torch.tensor([0.0] * 5 + [spread] + [1.0] * 5 + [1 + spread], dtype=torch.float64)
    agree(rules_at(spread), cliques(2, bridge), messages[:, None], messages.roll(1)[:, None])


@pytest.mark.parametrize("spread", ENDS)
def test_two_groups_of_numbers_in_the_output_layer(spread):
    values = torch.tensor([0.0] * 5 + [spread] + [1.0] * 5 + [1 + spread], dtype=torch.float64)
    messages = values[:, None] * torch.tensor([1.0, 0.5], dtype=torch.float64)
    agree([aggregators.LFighter(head=(2, 1))], cliques(2), messages)


@pytest.mark.parametrize(("spread", "estimate"), [(ENDS[0], "exact"), (ENDS[-1], "max")])
def test_two_groups_in_fifty_dimensions(spread, estimate):
    rng = np.random.default_rng(1)
    messages = groups(unit_steps(2, 50, rng), spread, rng)
    previous = groups(messages[::SIZE].numpy(), spread, rng)
    # Of seven inputs at the poisoned end of the bridge, two are poisoned.
    agree(rules_at(spread, (5, 10), estimate), cliques(2, (5, 5)), messages, previous)


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1), st.floats(-9.5, -3), st.sampled_from([2, 3, 50]))
def test_any_spread_and_any_centres(seed, exponent, length):
    rng = np.random.default_rng(seed)
    spread = 10**exponent
    centres = unit_steps(2, length, rng)
    if rng.random() < 0.5:
        centres -= centres[rng.integers(2)]  # one group is at the origin
    head = {2: (2, 1), 3: (3, 1), 50: (5, 10)}[length]
    agree(rules_at(spread, head), cliques(2), groups(centres, spread, rng))


@pytest.mark.parametrize(("count", "spread"), [*((3, spread) for spread in ENDS), (4, 1e-8)])
def test_a_line_of_groups(count, spread):
    rng = np.random.default_rng(count)
    messages = groups(unit_steps(count, 20, rng), spread, rng)
    agree(rules_at(spread, (4, 5)), cliques(count, (1, 0)), messages)


def test_groups_at_different_distances_and_of_different_spreads():
    rng = np.random.default_rng(5)
    directions = unit_steps(1, 20, rng) * np.array([[0.0], [1e-4], [1.0]])
    messages = torch.cat(
        [
            groups(centre[None], spread, rng)
            for centre, spread in zip(directions, SPREADS, strict=False)
        ]
    )
    agree(rules_at(1e-7, (4, 5)), cliques(3), messages)


@pytest.mark.parametrize("spread", [1e-8, 1e-9])
@pytest.mark.parametrize("group", range(3))
def test_output_layers_near_the_origin(spread, group):
    """What is near zero itself has norms and angles, however far the others are."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(3, 3))
        centres[group] = 0
        messages = groups(centres, spread, rng)
        agree([aggregators.LFighter(head=(3, 1))], cliques(3), messages)


@pytest.mark.parametrize("share_a_network", [True, False])
def test_one_run_of_several_has_far_groups(share_a_network):
    """Runs with one group and runs with two do not notice each other."""
    spread = 1e-8
    rng = np.random.default_rng(7)
    far = unit_steps(2, 20, rng)
    near = np.repeat(far[:1], 2, axis=0)
    wide = rng.normal(size=(2 * SIZE, 20))
    messages = torch.stack(
        [groups(near, spread, rng), groups(far, spread, rng), torch.from_numpy(wide)]
    )
    nets = [networks.complete(2 * SIZE, 2), cliques(2), cliques(2, (1, 2))]
    if share_a_network:
        nets = [cliques(2)] * 3
    seen = [Seen(net, run, run) for net, run in zip(nets, messages, strict=True)]
    for rule in rules_at(spread, (4, 5)):
        whole = whole_network(rule, nets, messages, messages)
        for run, here in enumerate(seen):
            for agent in range(2 * SIZE):
                apart = (whole[run, agent] - here.at(rule, agent)).norm()
                assert apart <= CLOSE * here.spread(agent), (rule, run, agent)


@pytest.mark.parametrize("spread", ENDS)
def test_what_is_remembered_may_be_far_from_the_messages(spread):
    rng = np.random.default_rng(11)
    messages = groups(unit_steps(2, 20, rng), spread, rng)
    previous = messages + torch.from_numpy(unit_steps(1, 20, rng))
    rules = [
        aggregators.CenteredClipping(threshold, steps=2, memory=True)
        for threshold in (spread, 0.3, 3.0)
    ]
    agree(rules, cliques(2), messages, previous)
    agree(rules, cliques(2), messages, messages.roll(1, dims=0))


@pytest.mark.parametrize("spread", ENDS)
def test_a_rule_tells_who_deviates(spread):
    """A check of the check: within a group the outputs are the five who agree, not the sixth."""
    messages = torch.tensor([0.0] * 5 + [spread] + [1.0] * 5 + [1 + spread], dtype=torch.float64)
    network = cliques(2)
    for rule in (aggregators.FABA(), aggregators.IOS(), aggregators.Krum(), aggregators.RFA()):
        found = rule(messages[:, None], network)[:, 0]
        assert (found[1:5] - 0).abs().max() <= CLOSE * spread, rule
        assert (found[7:11] - 1).abs().max() <= CLOSE * spread, rule


@pytest.mark.parametrize("spread", ENDS)
def test_small_output_layers_have_directions_too(spread):
    """Three inputs near the origin point in opposite directions, and so are less alike than others.

    LFighter keeps the inputs that are less alike, here three of seven.
    """
    row = np.array([0.3, 0.7, 1.1, 0.6])
    small = spread * np.outer([1, -1, 2], row)
    messages = np.vstack([row, 1.01 * row, row[::-1], 0.99 * row, small])
    rule = aggregators.LFighter(head=(2, 2))
    network = networks.complete(7)
    expected, _ = reference.aggregate("lfighter", messages, network, head=(2, 2))
    assert np.allclose(expected, small.mean(axis=0), rtol=1e-9, atol=0)
    messages = torch.from_numpy(messages)
    for found in (rule(messages, network)[0], rule.at(messages)):
        assert np.abs(found.numpy() - expected[0]).max() <= CLOSE * spread
