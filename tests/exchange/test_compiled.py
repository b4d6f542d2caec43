"""Rules by coordinates that are compiled give, bit for bit, what their tensors give."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from aggregator_inputs import exchanged
from hypothesis import given, settings
from hypothesis import strategies as st

from bezoar import BezoarError, aggregators, networks
from bezoar.aggregators import (
    AGGREGATORS,
    CoordinateAggregator,
    TotalVariation,
    WeightedAggregator,
)
from bezoar.exchange import Exchange, FalseMessages, Sent, Tuning
from bezoar.exchange._compiled import LANES, MOST_INPUTS, Kernel, _code
from bezoar.exchange._sorting import NETWORK_INPUTS

BY_TENSORS = Tuning(compiled=False)

NAMES = sorted(name for name, rule in AGGREGATORS.items() if issubclass(rule, CoordinateAggregator))

RULES = [*map(aggregators.create, NAMES), aggregators.create("trimmed_mean", keep_own=True)]

VALUES = [np.nan, np.inf, -np.inf, -1e30, -2.0, -0.0, 0.0, 1e-40, 0.5, 1.0, 1.0, 3.0, 1e30]


def kernel(rule, inputs=5, dtype=torch.float32):
    return Kernel(rule, inputs, inputs, 1, dtype, dtype)


def equal(one, other):
    return torch.equal(one.nan_to_num(nan=7e33), other.nan_to_num(nan=7e33))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_of_the_package_is_compiled(rule):
    for dtype in (torch.float32, torch.float64):
        assert kernel(rule, 5, dtype).can_compute(100)
    assert not kernel(rule, 5, torch.float16).can_compute(100)
    assert not kernel(rule, MOST_INPUTS + 1).can_compute(100)


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=30)
@given(
    st.integers(5, 12),
    st.one_of(st.integers(1, 3 * LANES), st.integers(1000, 1100)),
    st.sampled_from([torch.float32, torch.float64]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_the_same_bits_as_by_tensors(rule, agents, length, dtype, exact, seed):
    """On neighbourhoods of many sizes, with ties, infinities, NaN and numbers of all sizes."""
    rng = np.random.default_rng(seed)
    network = networks.create("erdos_renyi", agents=agents, probability=0.8, seed=0, poisoned=0)
    values = rng.choice(VALUES, size=(2, agents, length)) * rng.choice([1, 1, 1.1])
    sent = torch.from_numpy(np.where(rng.random(values.shape) < 0.5, values, rng.normal()))
    sent, way = sent.to(dtype), {"dense_advantage": 0, "exact_sums": 10**6 if exact else 0}
    here, there = (
        exchanged(rule, sent, network, Tuning(compiled=compiled, **way))[0]
        for compiled in (True, False)
    )
    assert equal(here, there)


@pytest.mark.parametrize("name", ["median", "meamed", "trimmed_mean"])
@pytest.mark.parametrize("inputs", [NETWORK_INPUTS, NETWORK_INPUTS + 1, 70, MOST_INPUTS + 2])
def test_any_number_of_inputs(name, inputs):
    sent = torch.from_numpy(np.random.default_rng(inputs).normal(size=(1, inputs, 40)))
    rule = aggregators.create(name, **({} if name == "median" else {"estimate": 3}))
    ways = [
        exchanged(rule, sent, networks.complete(inputs, 0), way)[0] for way in (None, BY_TENSORS)
    ]
    torch.testing.assert_close(*ways, rtol=0, atol=1e-15)


def test_equal_neighbourhoods_are_computed_once():
    """On a complete network all agents have the same output, but where they keep their own."""
    sent, network = torch.randn(2, 12, 50, dtype=torch.float64), networks.complete(12, 2)
    for rule in RULES:
        here, there = (exchanged(rule, sent, network, way)[0] for way in (None, BY_TENSORS))
        torch.testing.assert_close(here, there, rtol=0, atol=1e-15)
        alike = torch.equal(here, here[:, :1].expand_as(here))
        assert alike == (rule.sorts and not rule.keeps_own())


def test_an_iteration_needs_no_code_of_its_own():
    rule, inputs = TotalVariation(strength=0.5), torch.randn(4, 40)
    rule.at(inputs, iteration=1)
    before = _code.cache_info().misses
    steps = [rule.at(inputs, iteration=number) for number in (4, 9, 16)]
    assert _code.cache_info().misses == before
    one, two = (inputs[0] - step for step in steps[::2])
    torch.testing.assert_close(one, 2 * two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 1023, 1025, 2500])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_to_the_output_of_another_rule(length, dtype):
    """Every coordinate counts once, and what is not finite is infinitely far."""
    generator = torch.Generator().manual_seed(length)
    inputs = torch.randn(7, length, dtype=dtype, generator=generator)
    inputs[5, -1] = torch.nan
    rule = aggregators.create("trimmed_mean", estimate=1)
    point = rule.at(inputs.double())
    expected = (inputs.double() - point).square().sum(-1)
    used = Kernel(rule, 7, 1, 1, dtype, torch.float64)
    step = inputs.stride(0) * inputs.element_size()
    addresses = inputs.data_ptr() + step * np.arange(7)[None]
    found = torch.from_numpy(used.squared_distances(addresses, length, 0))[0]
    assert not torch.isfinite(found[5])
    rest = [0, 1, 2, 3, 4, 6]
    torch.testing.assert_close(found[rest], expected[rest], rtol=1e-12, atol=0)


@dataclass(frozen=True)
class Own(CoordinateAggregator):
    """A rule of the user's: ``work`` names what it does with two values."""

    work: str
    name = "own"
    sorts = False

    def combine(self, values, estimate, dtype, iteration):
        return {**WORK, **OTHER_WORK}[self.work](values[0].to(dtype), values[1].to(dtype))

    def extent(self, values, estimate):
        return values[0], values[0]


def in_place(a, b):
    total = a + 0
    alias = total
    total += b
    total *= 2
    total -= 1
    total /= 3
    return alias


def over_its_input(a, b):
    a += b
    return a


def masks_in_place(a, b):
    mask = a > b
    alias = mask
    mask &= b > 0
    mask |= a == 1
    return torch.where(alias, a, b)


WORK = {
    "masks in place": masks_in_place,
    "division of a number": lambda a, b: 3 / a - 0.1 / b,
    "arithmetic": lambda a, b: (1 - a) * 2 + b / 3 - (-b) + 1 / (2 + torch.abs(a)),
    "extremes": lambda a, b: torch.minimum(a, b) + 2 * torch.maximum(a - b, b - a),
    "NaN in extremes": lambda a, b: torch.maximum(a - a, b) + torch.minimum(b - b, a),
    "bounds": lambda a, b: torch.clamp(a, b, b + 1) + torch.clamp(b, max=0.5) + a.clamp(min=-1),
    "choices": lambda a, b: torch.where(
        (a > b) | ~(a >= -1) & (b != 0), a, torch.where(a == b, 1.0, b)
    ),
    "functions": lambda a, b: torch.sign(a) + torch.sqrt(torch.abs(b)) + b.abs().sqrt() * a.sign(),
    "kinds": lambda a, b: (
        torch.where(torch.isfinite(a - b), a, 0.0) + torch.isnan(a - b).to(a.dtype)
    ),
    "made": lambda a, b: torch.zeros_like(a) + torch.full_like(b, 3.5) + (a <= b).to(torch.float64),
    "types": lambda a, b: (a.to(torch.float64) / 3).to(torch.float32) + b,
    "in place": in_place,
    "over its input": over_its_input,
}


def values_of_all_kinds(dtype):
    values = torch.tensor(VALUES, dtype=dtype)
    return torch.cartesian_prod(values, values).T.contiguous()[None]


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [len(VALUES) ** 2, LANES - 1])
def test_whatever_a_rule_does_that_can_be_compiled(work, dtype, length):
    rule, sent = Own(work), values_of_all_kinds(dtype)[..., :length]
    assert kernel(rule, 2, dtype).can_compute(length)
    network = networks.complete(2, 0)
    here, there = (exchanged(rule, sent, network, way)[0] for way in (None, BY_TENSORS))
    assert equal(here, there)


@dataclass(frozen=True)
class ByIteration(Own):
    """A rule whose work depends on the iteration, too."""

    def combine(self, values, estimate, dtype, iteration):
        return BY_ITERATION[self.work](*values, iteration)


def scaled_in_place(a, b, iteration):
    iteration /= 3
    return a * iteration + b


BY_ITERATION = {
    "a factor": lambda a, b, k: a * (1 / k) + b,
    "divisions": lambda a, b, k: (a / k + b / k) / k,
    "a choice": lambda a, b, k: torch.where(k > 5, a, b) * torch.sqrt(k),
    "chosen": lambda a, b, k: torch.where(a > b, k / 3, b) * a,
    "a bound": lambda a, b, k: torch.clamp(a, max=1 / k) * 0.1 + b,
    "in place": scaled_in_place,
}


@pytest.mark.parametrize("work", BY_ITERATION)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_iteration_leaves_the_type_of_values(work, dtype):
    """It is a tensor without dimensions, whose float64 makes no float64 of float32."""
    rule, network = ByIteration(work), networks.complete(2, 0)
    generator = torch.Generator().manual_seed(0)
    sent = Sent(torch.randn(1, 2, 2000, dtype=dtype, generator=generator), iteration=7)
    assert kernel(rule, 2, dtype).can_compute(2000)
    here, there = (
        Exchange([rule], [network], tuning=Tuning(compiled=compiled, exact_sums=0))(sent)[0]
        for compiled in (True, False)
    )
    assert torch.equal(here, there)


OTHER_WORK = {
    "whole numbers": lambda a, b: torch.where(a > b, 1, 0) * a,
    "another function": lambda a, b: torch.sin(a) + b,
    "a method": lambda a, b: a.mul(2).add(b),
    "a choice by all values": lambda a, b: a if (a > 1e9).any() else b,
    "a choice by a value": lambda a, b: a if a.numel() and bool((a > 1e9).all()) else b,
    "a tensor": lambda a, b: torch.ones(()) * a,
    "bits": lambda a, b: a.view(torch.int64).to(a.dtype) + b,
    "no value of the inputs": lambda a, b: torch.zeros(a.shape),
    "numpy": lambda a, b: a + torch.from_numpy(np.exp(-np.abs(b.numpy()))),
}


@pytest.mark.parametrize("work", OTHER_WORK)
def test_what_cannot_be_compiled_is_done_with_tensors(work):
    rule, sent = Own(work), torch.randn(1, 2, 40)
    assert not kernel(rule, 2).can_compute(40)
    found, _ = exchanged(rule, sent, networks.complete(2, 0))
    own = OTHER_WORK[work](sent[0, 0].double(), sent[0, 1].double()).float()
    torch.testing.assert_close(found[0, 0], own)


def test_a_rule_whose_options_cannot_be_hashed():
    """Such a rule can be applied at one agent, with tensors."""

    @dataclass(frozen=True)
    class Listed(Own):
        weights: list[float] = field(default_factory=list)

        def combine(self, values, estimate, dtype, iteration):
            return values[0] * self.weights[0]

    inputs = torch.randn(3, 40)
    found = Listed("", [2.0]).at(inputs)
    torch.testing.assert_close(found, 2 * inputs[0])


def test_a_kernel_reads_as_many_addresses_as_it_has_inputs():
    values = torch.randn(6, 40)
    addresses = values.data_ptr() + 160 * np.arange(6)[None]
    with pytest.raises(ValueError, match="5 inputs"):
        kernel(RULES[0])(addresses, addresses[:, 0], 40, 0)
    with pytest.raises(ValueError, match="2 places"):
        kernel(RULES[0], 6)(addresses, np.concatenate([addresses[:, 0]] * 2), 40, 0)


def test_links_of_false_messages_may_be_short_integers():
    network, messages = networks.complete(5, {4}), torch.randn(1, 5, 50)
    found = []
    for kind in (np.int32, np.int64):
        links = [np.array([each], dtype=kind) for each in (0, 4, 2, 1)]
        sent = Sent(messages, FalseMessages(torch.ones(2, 50), *links))
        found.append(Exchange([aggregators.create("median")], [network])(sent)[0])
    assert torch.equal(*found)


def test_false_messages_lie_elsewhere():
    """Messages by receiver, in an order and a type of their own."""
    network, rng = networks.complete(5, {4}), np.random.default_rng(0)
    messages = torch.randn(2, 5, 50)
    links = [np.array(each) for each in ([0, 0, 1, 1], [4, 4, 4, 4], [2, 0, 1, 3], [1, 0, 2, 0])]
    values = torch.from_numpy(rng.normal(size=(50, 3))).T  # neither contiguous nor float32
    for rule in RULES:
        found = []
        for compiled in (True, False):
            one = Exchange([rule] * 2, [network] * 2, tuning=Tuning(compiled=compiled))
            found.append(one(Sent(messages, FalseMessages(values, *links)))[0])
        assert torch.equal(*found)
        told = messages[1].clone()
        told[4] = values[2]
        torch.testing.assert_close(found[0][1, 1], rule.at(told[[1, 0, 2, 3, 4]], estimate=1))


@dataclass(frozen=True)
class ByDistance(WeightedAggregator):
    """The mean of the last output and of the half of the inputs nearest to a robust point."""

    inner: str = "median"
    name = "by_distance"
    reads = "distances"

    def auxiliary(self):
        return aggregators.create(self.inner) if self.inner else None

    def remembers(self):
        return ("previous_output",)

    def weights(self, neighbourhood):
        kept = neighbourhood.ranks(neighbourhood.distances) < (neighbourhood.size // 2)[..., None]
        kept[..., neighbourhood.remembered["previous_output"]] = True
        return kept / kept.sum(-1, keepdim=True)


@pytest.mark.parametrize("dense", [True, False])
def test_a_rule_may_remember_and_read_distances(dense):
    network, rule = networks.two_castle(), ByDistance()
    generator = torch.Generator().manual_seed(0)
    messages, before = torch.randn(2, 1, 10, 40, generator=generator)
    one = Exchange([rule], [network], tuning=Tuning(dense_advantage=10**9 * dense))
    found = one(Sent(messages, remembered={"previous_output": before}))[0][0]
    for agent in range(10):
        inputs = messages[0, [agent, *network.neighbours(agent)]]
        apart = (inputs - aggregators.create("median").at(inputs)).square().sum(-1)
        nearer = inputs[apart.argsort()[: len(inputs) // 2]]
        expected = torch.cat([nearer, before[0, agent][None]]).mean(0)
        torch.testing.assert_close(found[agent], expected)
        alone = rule.at(inputs, remembered={"previous_output": before[0, agent]})
        torch.testing.assert_close(alone, expected)


@pytest.mark.parametrize(
    ("inner", "told"),
    [
        ("", "'auxiliary' names none"),
        ("mean", r"must be a rule by coordinates .* found Mean"),
        ("bulyan", "goes by values alone, found Bulyan"),
        ("nnm+median", "goes by values alone, found"),
    ],
)
def test_what_cannot_be_auxiliary_is_refused(inner, told):
    rule, inputs = ByDistance(inner), torch.randn(5, 40)
    with pytest.raises(BezoarError, match=told):
        Exchange([rule], [networks.complete(5)])
    with pytest.raises(BezoarError, match=told):
        rule.at(inputs, remembered={"previous_output": inputs[0]})
