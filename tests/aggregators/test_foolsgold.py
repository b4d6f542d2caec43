"""FoolsGold, which goes by the sums of what inputs changed so far."""

import numpy as np
import pytest
import torch
from aggregator_inputs import HEAD, assert_close
from field_reference import is_finite

from bezoar import BezoarError, attacks, networks, training
from bezoar.aggregators import FoolsGold
from bezoar.exchange import Exchange, FalseMessages, Sent, Tuning, UpdateSums

LENGTH = HEAD[0] * HEAD[1]


def cosine(one, other):
    scale = np.linalg.norm(one) * np.linalg.norm(other)
    return one @ other / scale if scale else 0.0


def weights_of(sums, confidence=1.0):
    """The weight of every input by the sum of its updates, as the authors have it."""
    agents = sorted(sums)
    pairs = [(v, u) for v in agents for u in agents if u != v]
    alike = {pair: cosine(sums[pair[0]], sums[pair[1]]) for pair in pairs}
    most = {v: max([alike[v, u] for u in agents if u != v], default=-np.inf) for v in agents}
    for v, u in pairs:
        if most[u] > most[v] and most[u] > 0:
            alike[v, u] *= most[v] / most[u]
    alone = {
        v: np.clip(1 - max([alike[v, u] for u in agents if u != v], default=-np.inf), 0, 1)
        for v in agents
    }
    largest = max(alone.values())
    found = {}
    for v in agents:
        share = min(0.99, alone[v] / largest) if largest > 0 else 0.0
        logit = np.log(share / (1 - share)) if share > 0 else -np.inf
        found[v] = float(np.clip(confidence * (logit + 0.5), 0, 1))
    return found


class Loop:
    """Agent by agent and input by input, with the sums of all iterations so far."""

    def __init__(self, network, confidence=1.0):
        self.network, self.confidence, self.sums = network, confidence, {}

    def __call__(self, messages, before):
        models = []
        for w in range(self.network.agents):
            inputs = self.network.closed_neighbourhood(w)
            good = [v for v in inputs if is_finite(messages[v]) and is_finite(before[w])]
            for v in good:
                changed = (messages[v] - before[w])[:LENGTH]
                self.sums[w, v] = self.sums.get((w, v), 0) + changed
            if w not in good:
                models.append(np.full(messages.shape[1], np.nan))
                continue
            zero = np.zeros(LENGTH)
            given = weights_of({v: self.sums.get((w, v), zero) for v in good}, self.confidence)
            total = sum(given.values())
            mean = sum(share * messages[v] for v, share in given.items() if share)
            models.append(mean / total if total else messages[w])
        return np.stack(models)


DENSE, GATHERED, IN_TURNS = (
    Tuning(dense_advantage=10**9),
    Tuning(dense_advantage=0),
    Tuning(dense_advantage=10**9, matrix_bytes=1),
)


def exchanges(rule, network, rounds, tuning=DENSE):
    """Every agent's models after each of several rounds of messages and models before."""
    exchange = Exchange([rule], [network], tuning=tuning)
    sums = torch.zeros(1, exchange.links.length, LENGTH, dtype=torch.float64)
    for number, (messages, before) in enumerate(rounds, start=1):
        known = {"model_before_step": torch.from_numpy(before)[None]}
        update = UpdateSums([0], sums, torch.zeros_like(sums))
        sent = Sent(torch.from_numpy(messages)[None], None, known, number, sums=update)
        yield exchange(sent)[0][0].numpy()
        sums = update.after


def drawn(rng, network, kind, scale=1.0):
    """Rounds in which everybody differs, or many are the same, or one sends what is not finite."""
    for _ in range(3):
        before = rng.normal(size=8) + scale * rng.normal(size=(network.agents, 8))
        messages = before + 0.2 * scale * rng.normal(size=before.shape)
        if kind == "sybils":
            messages[-3:] = messages[-1] + 1e-3 * scale * rng.normal(size=(3, 8))
        elif kind == "the same":
            before[:], messages[2:] = before[0], messages[2]
        elif kind == "not finite":
            messages[1, rng.integers(8)] = np.nan
        yield messages, before


NETWORKS = (networks.complete(7, 2), networks.fan(8), networks.ring(30), networks.complete(3))


@pytest.mark.parametrize("tuning", [DENSE, GATHERED, IN_TURNS], ids=["dense", "gathered", "turns"])
@pytest.mark.parametrize("kind", ["different", "sybils", "the same", "not finite"])
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_equals_the_loop(network, kind, tuning):
    for confidence, scale in ((1.0, 1.0), (2.0, 1e-8)):
        rounds = list(drawn(np.random.default_rng(1), network, kind, scale))
        loop = Loop(network, confidence)
        rule = FoolsGold(head=HEAD, confidence=confidence)
        found = exchanges(rule, network, rounds, tuning)
        for (messages, before), models in zip(rounds, found, strict=True):
            expected = loop(messages, before)
            # Near consensus a sum's rounding decides little, but more than the messages' own.
            assert_close(models, expected, 1e-9 if scale == 1 else 1e-4 * scale)


def test_those_that_are_alike_are_not_listened_to():
    network = networks.complete(8, {5, 6, 7})
    rounds = list(drawn(np.random.default_rng(2), network, "sybils"))
    made = exchanges(FoolsGold(HEAD), network, rounds)
    for (messages, _), models in zip(rounds, made, strict=True):
        regular = messages[:5]
        assert (models[:5] >= regular.min(0) - 1e-9).all()
        assert (models[:5] <= regular.max(0) + 1e-9).all()


@pytest.mark.parametrize("tuning", [DENSE, GATHERED], ids=["dense", "gathered"])
def test_false_messages_are_summed_up_where_they_are_heard(tuning):
    network, rule = networks.complete(4, {3}), FoolsGold(head=HEAD)
    rng = np.random.default_rng(3)
    [(messages, before), *_] = drawn(rng, network, "different")
    lie = rng.normal(size=8)
    exchange = Exchange([rule], [network], tuning=tuning)
    zeros = torch.zeros(1, exchange.links.length, LENGTH, dtype=torch.float64)
    known = {"model_before_step": torch.from_numpy(before)[None]}
    one = np.array([0])
    false = FalseMessages(torch.from_numpy(lie)[None], one, one + 3, one + 1, one)
    sums = UpdateSums([0], zeros, torch.zeros_like(zeros))
    sent = Sent(torch.from_numpy(messages)[None], false, known, 1, sums=sums)
    [found], _ = exchange(sent)
    told = messages.copy()
    told[3] = lie
    assert_close(found[1], Loop(network)(told, before)[1], 1e-9)
    assert_close(found[0], Loop(network)(messages, before)[0], 1e-9)
    # Agent 1's inputs follow the four of agent 0: its own, then those of 0, 2 and 3.
    assert_close(sums.after[0, 7], (lie - before[1])[:LENGTH], 1e-12)


def test_it_is_refused_where_nothing_is_summed_up():
    rule, inputs = FoolsGold(head=HEAD), np.zeros((3, 8))
    with pytest.raises(BezoarError, match="which one exchange tells nothing; it works in training"):
        rule.at(inputs, remembered={"model_before_step": inputs[0]})
    known = {"model_before_step": torch.zeros(1, 3, 8)}
    with pytest.raises(BezoarError, match="which is kept in training only"):
        Exchange([rule], [networks.complete(3)])(Sent(torch.zeros(1, 3, 8), None, known))
    run = training.Run([networks.ring(4)] * 2, rule, attacks.create("label_flip"))
    with pytest.raises(BezoarError, match="the network must not change over time"):
        training.check_runs([run])


@pytest.mark.parametrize("late", [False, True])
def test_a_training_keeps_the_sums(late):
    """Of output layers of different sizes in one tensor; each update counts once."""
    rules = (FoolsGold(head=(2, 2)), FoolsGold(head=(2, 1)))
    runs = [training.Run(networks.fan(6), rule, attacks.create("label_flip")) for rule in rules]
    seen, sums = [], np.zeros((6, 4))
    with training.Workers(1) as workers:
        task = training.random_quadratics(runs, workers)
        engine = training.Engine(task, iterations=4, tuning=Tuning(ask_late=late))
        state = engine.start()
        for _ in range(4):
            before = state.models.clone()
            state = engine.step(state, lambda k, sent, made: seen.append(sent.clone()))
            sums += (seen[-1] - before)[0, :, :4].numpy()
    own = np.cumsum([0, *(networks.fan(6).degrees[:-1] + 1)])
    assert_close(state.tensors["update_sums"][0, own], sums, 1e-12)
    assert not bool(state.tensors["update_sums"][1, :, 2:].any())
