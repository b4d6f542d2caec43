"""A rule at one agent alone gives what the exchange of the whole network gives there."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from one_agent import IN_TRAINING, Seen, every_rule, whole_network

from bezoar import BezoarError, aggregators, networks
from bezoar.exchange import is_dense

HEAD = (3, 5)

#: Messages of 1 and 7 numbers are too short for the output layer.
LENGTHS = (1, 5000)

#: More agents than a network may have, for its links, to be treated as dense.
SPARSE = {
    "ring": networks.ring(60, {5, 31}),
    "random_regular": networks.random_regular(150, 8, 9, seed=1),
    "star": networks.star(101, {7, 60}),
    "erdos_renyi": networks.erdos_renyi(200, 0.03, {3, 90}, seed=2),
}

DENSE = {
    "two_castle": networks.two_castle(10, 2),
    "fan": networks.fan(10, 1),
    "complete": networks.complete(14, 3),
}


@pytest.fixture(autouse=True)
def one_thread():
    """Torch at one thread, as the engine has it: with more, matrix products are cut up by size."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rules_for(network, length):
    """Every rule that messages of this length allow.

    A leaf has too few inputs to trim.
    """
    head = HEAD if length >= HEAD[0] * HEAD[1] else None
    trimmed = 0 if network.degrees.min() == 1 else None
    return every_rule(threshold=0.8 * length**0.5, head=head, trimmed=trimmed)


def random_exchange(network, length, dtype, runs=1, seed=0):
    """Messages and what is remembered, ``[runs, W, D]``; poisoned agents stand apart."""
    rng = np.random.default_rng([seed, length, network.agents])
    messages = rng.normal(size=(runs, network.agents, length))
    messages[:, list(network.poisoned)] += 2 * rng.normal(size=length)
    previous = rng.normal(size=messages.shape) / 2
    return torch.tensor(messages, dtype=dtype), torch.tensor(previous, dtype=dtype)


def agents_of_several_kinds(network):
    """Agents with few and many inputs, of which none or several are poisoned."""
    kinds = {}
    for agent in range(network.agents):
        kind = int(network.degrees[agent]), int(network.poisoned_inputs[agent])
        kinds[kind] = agent
    ordered = [kinds[kind] for kind in sorted(kinds)]
    return [*ordered[::3], ordered[-1]] if len(ordered) > 9 else ordered


def test_every_rule_is_here():
    names = {rule.name for rule in every_rule(head=HEAD) if not rule.before}
    assert names == set(aggregators.AGGREGATORS) - IN_TRAINING


@pytest.mark.parametrize("name", SPARSE)
def test_these_networks_are_sparse(name):
    assert not is_dense(SPARSE[name])


@pytest.mark.parametrize("name", DENSE)
def test_these_networks_are_dense(name):
    assert is_dense(DENSE[name])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", SPARSE)
def test_the_same_bits_on_sparse_networks(name, length, dtype):
    network = SPARSE[name]
    messages, previous = random_exchange(network, length, dtype)
    seen = Seen(network, messages[0], previous[0])
    for rule in rules_for(network, length):
        [whole] = whole_network(rule, [network], messages, previous)
        for agent in agents_of_several_kinds(network):
            assert torch.equal(seen.at(rule, agent), whole[agent]), (rule, agent)


def test_the_same_bits_at_every_agent_of_several_runs():
    network = SPARSE["random_regular"]
    messages, previous = random_exchange(network, 17, torch.float64, runs=3)
    seen = Seen(network, messages[1], previous[1])
    for rule in rules_for(network, 17):
        whole = whole_network(rule, [network] * 3, messages, previous)[1]
        alone = torch.stack([seen.at(rule, agent) for agent in range(network.agents)])
        assert torch.equal(alone, whole), rule


@pytest.mark.parametrize("length", [1, 2, 40])
@pytest.mark.parametrize("name", ["random_regular", "star"])
def test_ties_are_broken_alike_on_sparse_networks(name, length):
    network = SPARSE[name]
    rng = np.random.default_rng(length)
    messages = torch.from_numpy(rng.integers(-1, 2, size=(1, network.agents, length)).astype(float))
    previous = messages.roll(1, dims=1)
    seen = Seen(network, messages[0], previous[0])
    for rule in rules_for(network, length):
        [whole] = whole_network(rule, [network], messages, previous)
        for agent in agents_of_several_kinds(network):
            assert torch.equal(seen.at(rule, agent), whole[agent]), (rule, agent)


def rounding(rule, messages):
    """How far apart two ways of computing may be.

    Both add up at most a few hundred products of float64 numbers. The geometric median is the
    limit of an iteration, and is near it only by the iteration's own tolerance.
    """
    size = float(messages.double().abs().max())
    if rule.name == "rfa":
        return 10 * rule.tolerance * size
    return 100 * torch.finfo(messages.dtype).eps * size


def agree_on_a_dense_network(network, messages, previous):
    """Check every rule at every agent.

    The geometric median need not be unique, and its sum of distances may be flat around it: both
    must be as good.
    """
    seen = Seen(network, messages[0], previous[0])
    length = messages.shape[-1]
    for rule in rules_for(network, length):
        [whole] = whole_network(rule, [network], messages, previous)
        for agent in range(network.agents):
            found, expected = seen.at(rule, agent), whole[agent]
            if rule.name == "rfa":
                inputs = messages[0, seen.senders(agent)]
                found, expected = (
                    (inputs - model).norm(dim=1).sum() for model in (found, expected)
                )
            assert (found - expected).abs().max() <= rounding(rule, messages), (rule, agent)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", DENSE)
def test_the_same_but_for_rounding_on_dense_networks(name, length, dtype):
    agree_on_a_dense_network(DENSE[name], *random_exchange(DENSE[name], length, dtype))


@settings(max_examples=5)
@given(st.sampled_from(sorted(DENSE)), st.sampled_from([1, 2, 20]), st.integers(0, 2**32 - 1))
def test_ties_are_broken_alike_on_dense_networks(name, length, seed):
    network = DENSE[name]
    rng = np.random.default_rng(seed)
    messages = torch.from_numpy(rng.integers(-1, 2, size=(1, network.agents, length)).astype(float))
    agree_on_a_dense_network(network, messages, messages.roll(1, dims=1))


def equal_and_not_finite_in_the_same_places(found, expected, tolerance):
    assert found.isnan().equal(expected.isnan())
    assert found.isinf().equal(expected.isinf())
    infinite = expected.isinf()
    assert found[infinite].equal(expected[infinite])
    usual = expected.isfinite()
    assert ((found - expected)[usual].abs() <= tolerance).all()


@pytest.mark.parametrize("name", ["sparse", "dense"])
@pytest.mark.parametrize("values", [(np.nan,), (np.inf,), (-np.inf, np.nan, np.inf)], ids=str)
def test_messages_that_are_not_finite(name, values):
    """From one agent, from several, in one coordinate or in all."""
    network = {"sparse": SPARSE["random_regular"], "dense": DENSE["two_castle"]}[name]
    messages, previous = random_exchange(network, 20, torch.float64)
    for place, value in enumerate(values):
        messages[0, place] = value
        messages[0, network.agents // 2 + place, 3] = value
    finite = messages[messages.isfinite()]
    seen = Seen(network, messages[0], previous[0])
    near = [agent for agent in range(network.agents) if not seen.messages[agent].isfinite().all()]
    near = sorted({each for agent in near for each in (agent, *network.neighbours(agent))})
    agents = [*near, *(agent for agent in range(network.agents) if agent not in near)][:20]
    met = False
    for rule in rules_for(network, 20):
        [whole] = whole_network(rule, [network], messages, previous)
        for agent in agents:
            found = seen.at(rule, agent)
            equal_and_not_finite_in_the_same_places(found, whole[agent], rounding(rule, finite))
            met |= not bool(found.isfinite().all())
    assert met


def test_what_is_remembered_may_not_be_finite():
    rule = aggregators.CenteredClipping(memory=True)
    for network in (SPARSE["ring"], DENSE["fan"]):
        messages, previous = random_exchange(network, 6, torch.float64)
        previous[0, 2] = torch.nan
        seen = Seen(network, messages[0], previous[0])
        [whole] = whole_network(rule, [network], messages, previous)
        for agent in range(network.agents):
            found = seen.at(rule, agent)
            equal_and_not_finite_in_the_same_places(found, whole[agent], rounding(rule, messages))
            assert bool(found.isfinite().all()) is (agent != 2)


def test_the_order_of_the_neighbours_does_not_matter():
    network = SPARSE["random_regular"]
    messages, previous = random_exchange(network, 30, torch.float64)
    seen = Seen(network, messages[0], previous[0])
    for rule in rules_for(network, 30):
        for agent in (0, 57, 99):
            senders = [agent, *reversed(network.neighbours(agent))]
            apart = seen.at(rule, agent, senders) - seen.at(rule, agent)
            assert apart.abs().max() <= rounding(rule, messages), rule


def test_ties_go_to_the_lowest_sender():
    # The last two inputs are as far from the mean as each other, and one of them is dropped.
    inputs = torch.tensor([[0.0], [1.0], [-1.0]], dtype=torch.float64)
    rule = aggregators.FABA()
    assert rule.at(inputs, estimate=1).item() == -0.5
    assert rule.at(inputs, estimate=1, senders=[5, 2, 7]).item() == -0.5
    assert rule.at(inputs, estimate=1, senders=[5, 7, 2]).item() == 0.5
    assert rule.at(inputs, estimate=1, senders=[5, 2**70, 2]).item() == 0.5


def test_krum_returns_the_input_of_the_lowest_sender():
    inputs = torch.tensor([[3.0], [0.0], [1.0]], dtype=torch.float64)
    rule = aggregators.Krum()
    assert rule.at(inputs, estimate=0, senders=[0, 8, 4]).item() == 1
    assert rule.at(inputs, estimate=0, senders=[0, 4, 8]).item() == 0


def test_an_agent_without_neighbours_keeps_its_own_message():
    own = torch.arange(20, dtype=torch.float64).view(1, -1)
    for rule in every_rule(head=HEAD, threshold=1e3):
        known = {"previous_output": own[0], "model_before_step": own[0]}
        found = rule.at(own, mixing=[1.0], estimate=0, remembered=known)
        assert torch.equal(found, own[0]), rule


def test_a_number_as_estimate_need_not_be_given_again():
    inputs = torch.tensor([[0.0], [0.1], [5.0], [0.2]], dtype=torch.float64)
    for name in ("trimmed_mean", "faba", "krum"):
        told = aggregators.create(name, estimate=1).at(inputs)
        assert torch.equal(told, aggregators.create(name).at(inputs, estimate=1))


def test_inputs_are_left_alone_and_the_result_is_the_callers():
    network = SPARSE["ring"]
    messages, previous = random_exchange(network, 20, torch.float64)
    before = messages.clone()
    seen = Seen(network, messages[0], previous[0])
    for rule in rules_for(network, 20):
        first = seen.at(rule, 7)
        kept = first.clone()
        seen.at(rule, 8)  # in whatever memory the first call used
        assert torch.equal(first, kept), rule
        first.fill_(7)
        assert torch.equal(messages, before), rule


def test_lists_and_tensors_are_both_mixing_weights():
    inputs = torch.arange(8.0, dtype=torch.float64).view(4, 2)
    weights = [0.1, 0.2, 0.3, 0.4]
    rule = aggregators.WeightedMean()
    expected = np.array(weights) @ inputs.numpy()
    array = np.array(weights)
    for same in (weights, tuple(weights), array, torch.from_numpy(array)):
        found = rule.at(inputs, mixing=same)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)


def refused(rule, inputs, match, **given_to_it):
    with pytest.raises(BezoarError, match=match):
        rule.at(inputs, **given_to_it)


FOUR = torch.zeros(4, 20, dtype=torch.float64)
EQUAL = [0.25] * 4


@pytest.mark.parametrize("name", ["weighted_mean", "clipped_gossip", "ios"])
def test_rules_with_mixing_weights_need_them(name):
    rule = aggregators.create(name)
    refused(rule, FOUR, rf"mixing: {name} needs .* one weight an input; found nothing", estimate=1)


@pytest.mark.parametrize("name", ["trimmed_mean", "faba", "ios", "krum"])
@pytest.mark.parametrize("option", ["exact", "max"])
def test_rules_with_an_estimate_need_it(name, option):
    rule = aggregators.create(name, estimate=option)
    match = rf"estimate: {name} needs the number of inputs .*; found nothing"
    refused(rule, FOUR, match, mixing=EQUAL)


@pytest.mark.parametrize("name", sorted(aggregators.AGGREGATORS))
@pytest.mark.parametrize("found", [-1, 1.5, True, "true"])
def test_an_estimate_is_a_number_from_0(name, found):
    match = rf"estimate: expected a number from 0, found {found!r}"
    refused(aggregators.create(name), FOUR, match, mixing=EQUAL, estimate=found)


@pytest.mark.parametrize(
    ("name", "most"), [("trimmed_mean", 1), ("faba", 3), ("ios", 3), ("krum", 3)]
)
def test_an_estimate_that_leaves_nothing_is_refused(name, most):
    rule = aggregators.create(name)
    assert rule.at(FOUR, mixing=EQUAL, estimate=most).shape == (20,)
    taken = rf"impossible with 4 inputs of which {most + 1} are taken for poisoned"
    match = rf"aggregator {name}: {taken}: the rule .+"
    refused(rule, FOUR, match, mixing=EQUAL, estimate=most + 1)


@pytest.mark.parametrize("rule", every_rule(head=HEAD), ids=str)
@pytest.mark.parametrize("shape", [(20,), (1, 4, 20), (0, 20)])
def test_inputs_of_another_shape_are_refused(rule, shape):
    match = rf"inputs: expected .*shape \[.*, D\].*, found .*\[{shape[0]}"
    refused(rule, torch.zeros(shape), match, mixing=EQUAL, estimate=0)


@pytest.mark.parametrize("rule", every_rule(head=HEAD), ids=str)
def test_integers_are_refused(rule):
    match = r"inputs: expected floating point .*, found torch\.int64"
    refused(rule, torch.zeros(4, 20, dtype=torch.int64), match, mixing=EQUAL, estimate=0)


@pytest.mark.parametrize(
    "weights",
    [
        [0.5, 0.5],
        [0.2] * 5,
        [[0.25] * 4],
        [0.25] * 3 + [0.5],
        [0.5, 0.5, 0.5, -0.5],
        [0.5, 0.5, 0.0, float("nan")],
        [0.0] * 4,
    ],
)
@pytest.mark.parametrize("name", ["weighted_mean", "ios", "mean"])
def test_other_mixing_weights_are_refused(name, weights):
    match = r"mixing: expected 4 weights that sum to 1, one an input, found \[+"
    refused(aggregators.create(name), FOUR, match, mixing=weights, estimate=0)


@pytest.mark.parametrize("name", ["metropolis", {0: 1.0}, ["a"] * 4, [[0.5, 0.5], [1.0]]])
def test_what_is_no_number_an_input_is_refused(name):
    rule = aggregators.create("ios")
    refused(rule, FOUR, "mixing: expected one number an input, found", mixing=name, estimate=1)
    rule = aggregators.create("ubar")
    refused(rule, FOUR, "losses: expected one number an input, found", losses=name)


@pytest.mark.parametrize("senders", [[0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 3, 4], [0, 1, 2, "b"]])
def test_senders_must_be_different_and_one_an_input(senders):
    match = r"senders: expected 4 different agents, found \[0, 1, 2"
    refused(aggregators.Mean(), FOUR, match, senders=senders)


def test_senders_may_be_a_tensor_or_an_array():
    inputs = torch.tensor([[3.0], [0.0], [1.0]], dtype=torch.float64)
    for senders in (torch.tensor([0, 8, 4]), np.array([0, 8, 4])):
        assert aggregators.Krum().at(inputs, estimate=0, senders=senders).item() == 1
    for senders in (torch.tensor([0, 4, 4]), np.array([0, 4, 4]), 3, "abc"):
        refused(aggregators.Mean(), inputs, "senders: expected 3 different", senders=senders)


def test_what_is_remembered_must_be_given_and_as_long_as_a_message():
    rule = aggregators.CenteredClipping(memory=True)
    needs = r"remembered: centered_clipping needs 'previous_output' of length 20, found "
    refused(rule, FOUR, needs + "nothing")
    refused(rule, FOUR, needs + "nothing", remembered={"model_before_step": FOUR[0]})
    refused(rule, FOUR, needs + r"shape \[19\]", remembered={"previous_output": FOUR[0, :19]})
    refused(rule, FOUR, needs + r"shape \[4, 20\]", remembered={"previous_output": FOUR})


def test_an_exchange_needs_what_its_rules_remember():
    rule = aggregators.CenteredClipping(memory=True)
    with pytest.raises(BezoarError, match="remembered: centered_clipping needs 'previous_output'"):
        rule(torch.zeros(10, 3), networks.fan(10))


def test_the_output_layer_must_be_known_and_fit():
    refused(aggregators.LFighter(), FOUR, r"lfighter: give head=\(classes, features\)")
    rule = aggregators.LFighter(head=(3, 7))
    refused(rule, FOUR, r"head: 3 × 7 is longer than a message of 20")
