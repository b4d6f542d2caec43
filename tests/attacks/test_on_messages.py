"""Attacks on messages, against their definitions written out for one receiver."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bezoar
from bezoar import BezoarError, attacks, networks
from bezoar.attacks import SeenMessages
from bezoar.experiments import RunSpec, prepare

NETWORK = networks.erdos_renyi(12, 0.4, {2, 7, 11}, seed=4)

ON_MESSAGES = [name for name, attack in attacks.ATTACKS.items() if attack.lies]


def seen(network=NETWORK, broadcast=False, seed=0, knows="everything", length=5, iteration=3):
    """Random messages, as attackers see them."""
    rng = np.random.default_rng(seed)
    messages, models = torch.from_numpy(rng.normal(size=(2, 2, network.agents, length)))
    links = [(p, v) for p in network.poisoned for v in network.neighbours(p)]
    senders, receivers = torch.tensor(links).T
    if broadcast:
        senders, receivers = torch.tensor(network.poisoned), None
    return SeenMessages(
        iteration, network, knows, senders, receivers, messages, models, seeds=(seed, seed + 1)
    )


def sent(name, known, **options):
    return attacks.create(name, **options).on_messages(known)


def regular_inputs(known, receiver):
    return [v for v in known.network.closed_neighbourhood(receiver) if v in known.network.regular]


def each_message(name, **options):
    """What the receiver hears, and what it is sent, for every run and link."""
    known = seen()
    found = sent(name, known, **options)
    for run in range(2):
        for place, receiver in enumerate(known.receivers.tolist()):
            yield known, run, receiver, found[run, place].numpy()


def test_dissensus_holds_the_weighted_mean_where_it_was():
    known = seen()
    lies = sent("dissensus", known)
    mixing = NETWORK.mixing("metropolis").toarray()
    links = list(zip(known.senders.tolist(), known.receivers.tolist(), strict=True))
    for w in NETWORK.regular:
        if any(to == w for _, to in links):
            messages = known.messages[0].clone()
            for place, (p, to) in enumerate(links):
                if to == w:
                    messages[p] = lies[0, place]
            mean = torch.from_numpy(mixing[w]) @ messages
            torch.testing.assert_close(mean, known.messages[0, w])


def test_the_spectral_attack_draws_the_halves_apart():
    line = networks.line(9).with_poisoned({4})
    known = seen(networks.Network(line.graph, {4}))
    pushed = sent("spectral", known, scale=2.0) - known.receivers_messages()
    across = (pushed[:, :1] * pushed[:, 1:]).sum(-1)
    assert (across < 0).all()  # the two neighbours sit on either side
    assert (
        float(sent("spectral", known, scale=0.0).sub(known.receivers_messages()).abs().max()) == 0
    )


def test_a_little_is_enough():
    for known, run, receiver, found in each_message("alie"):
        heard = known.messages[run, regular_inputs(known, receiver)].numpy()
        n = len(NETWORK.closed_neighbourhood(receiver))
        poisoned = n - len(heard)
        share = (n - poisoned - (n // 2 + 1 - poisoned)) / (n - poisoned)
        z = NormalDist().inv_cdf(min(max(share, 1 / (2 * n)), 1 - 1 / (2 * n)))
        np.testing.assert_allclose(found, heard.mean(0) - z * heard.std(0), atol=1e-12)
    for known, run, receiver, found in each_message("alie", z=1.5):
        heard = known.messages[run, regular_inputs(known, receiver)].numpy()
        np.testing.assert_allclose(found, heard.mean(0) - 1.5 * heard.std(0), atol=1e-12)


def test_a_step_against_the_mean_step():
    for known, run, receiver, found in each_message("ipm", scale=0.5):
        inputs = regular_inputs(known, receiver)
        before, after = known.models[run, inputs].mean(0), known.messages[run, inputs].mean(0)
        np.testing.assert_allclose(found, before - 0.5 * (after - before), atol=1e-12)


def largest_factor(allowed):
    """The largest number that is allowed, by bisection."""
    low, high = 0.0, 1.0
    while allowed(high):
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


@pytest.mark.parametrize("direction", ["deviation", "mean", "sign"])
@pytest.mark.parametrize("name", ["min_max", "min_sum"])
def test_closed_forms_against_bisection(name, direction):
    for known, run, receiver, found in each_message(name, direction=direction):
        heard = known.messages[run, regular_inputs(known, receiver)].numpy()
        if len(heard) == 1:
            np.testing.assert_allclose(found, heard[0])
            continue
        mean = heard.mean(0)
        along = {"deviation": heard.std(0), "mean": mean, "sign": np.sign(mean)}[direction]
        apart = ((heard[:, None] - heard) ** 2).sum(-1)

        def allowed(factor, heard=heard, mean=mean, along=along, apart=apart):
            away = ((mean - factor * along - heard) ** 2).sum(-1)
            if name == "min_max":
                return away.max() <= apart.max()
            return away.sum() <= apart.sum(1).max()

        expected = mean - largest_factor(allowed) * along
        np.testing.assert_allclose(found, expected, atol=1e-6)


@given(st.sampled_from(["alie", "ipm", "min_max", "min_sum"]), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_broadcast_is_what_somebody_who_hears_all_would_be_sent(name, seed):
    everyone = networks.complete(9, {1, 8})
    lies = sent(name, seen(everyone, broadcast=True, seed=seed), broadcast=True)
    each = sent(name, seen(everyone, seed=seed))
    assert lies.shape == (2, 2, 5)
    torch.testing.assert_close(lies[:, :1].expand_as(each), each)


def test_blunt_attacks():
    known = seen(broadcast=True)
    assert (sent("zero", known) == 0).all()
    assert torch.equal(sent("mimic", known)[:, 1], known.messages[:, NETWORK.regular[0]])
    assert torch.equal(sent("mimic", known, agent=5)[:, 0], known.messages[:, 5])
    assert sent("non_finite", known).isnan().all()
    first = sent("non_finite", known, value="inf", everywhere=False)
    assert first[..., 0].isinf().all()
    assert torch.equal(first[..., 1:], known.own_messages()[..., 1:])


def test_noise_follows_from_seed_and_iteration():
    once = sent("gaussian", seen(broadcast=True))
    assert torch.equal(once, sent("gaussian", seen(broadcast=True)))
    assert not torch.equal(once, sent("gaussian", seen(broadcast=True, iteration=4)))
    noise = sent("gaussian", seen(broadcast=True, length=4000), deviation=3.0)
    noise = noise - seen(broadcast=True, length=4000).own_messages()
    assert abs(float(noise.std()) - 3) < 0.1
    assert not torch.equal(noise[0], noise[1])  # of other seeds


def trained(attack):
    fields = {"partition": "iid", "iterations": 2, "every": 2, "samples": 500, "seed": 1}
    return bezoar.run(network="fan", aggregator="median", attack=attack, **fields)


@pytest.fixture(scope="module")
def honest():
    """Nobody lies, and all labels are right."""
    return trained("label_flip:fraction=0")


@pytest.mark.parametrize("name", ON_MESSAGES)
def test_in_training(name, honest):
    found = trained(name)
    assert np.isfinite(found["accuracy_mean"]).all()
    regular = list(networks.fan().regular)
    assert not torch.equal(found.models[regular], honest.models[regular])


def test_what_an_attack_does_follows_from_its_methods():
    @dataclass(frozen=True)
    class Silence(attacks.Attack):
        """Send nothing but zeros."""

        def on_messages(self, seen):
            return torch.zeros_like(seen.own_messages())

    assert (Silence.lies, Silence.dynamic, Silence.triggers) == (True, False, False)


@pytest.mark.parametrize("attack", ["mimic:agent=7", "label_flip+mimic:agent=70"])
def test_nobody_copies_who_is_not_regular(attack):
    spec = RunSpec.read({"network": "two_castle", "poisoned": [7], "attack": attack})
    with pytest.raises(BezoarError, match="mimic: agent: expected a regular agent of the two_cas"):
        prepare(spec)


@pytest.mark.parametrize("own", [1e30, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["alie", "ipm", "mimic", "min_max", "zero"])
def test_a_mix_that_is_all_lie_does_not_depend_on_the_own_message(name, own):
    known = seen()
    known.messages[:, list(NETWORK.poisoned)] = own
    expected = attacks.create(name).on_messages(known)
    assert torch.equal(attacks.create(f"label_flip+{name}").on_messages(known), expected)
