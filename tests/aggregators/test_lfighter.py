"""LFighter."""

import numpy as np
import pytest
import torch
from aggregator_inputs import (
    HEAD,
    PATHS,
    Case,
    apply,
    assert_close,
    exchanged,
    random_messages,
    random_network,
)
from aggregator_properties import (
    EqualsTheLoop,
    KeepsConsensus,
    Scales,
    Symmetric,
    WeighsInputs,
)
from aggregator_reference import composed
from aggregator_robustness import (
    LeavesOutBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
    SurvivesMostlyBadMessages,
)

from bezoar import Network, networks
from bezoar.aggregators import LFighter, OutputLayer
from bezoar.exchange import Exchange, Sent


class TestLFighter(
    # Not Translates: cosine similarities and row norms are about the origin. Not Bounded: an
    # outlier is a cluster of its own, and of two clusters of one the lowest agent's is kept.
    EqualsTheLoop,
    Symmetric,
    Scales,
    KeepsConsensus,
    WeighsInputs,
    LeavesOutBadMessages,
    SurvivesMostlyBadMessages,
    ResolvesConsensus,
    SeesPastAnOutlier,
):
    cases = (Case("lfighter", head=HEAD), Case("lfighter", head=(2, 3)))


def test_small_neighbourhoods_are_split_best_beside_large_ones():
    # The hub hears more than can be enumerated; that must not coarsen the others' splits.
    rng = np.random.default_rng(21)
    case = Case("lfighter", head=HEAD)
    for _ in range(15):
        graph = random_network(rng, 15, 0.35).graph.copy()
        graph.add_edges_from((0, v) for v in range(1, 15))
        network = Network(graph)
        messages = random_messages(rng, network)
        expected, _ = case.loop(messages, network)
        small = [v for v in range(15) if len(network.closed_neighbourhood(v)) <= 12]
        for name, constants in PATHS.items():
            found = apply(case.rule(), messages, network, tuning=constants)
            assert_close(found[small], expected[small], 1e-9, name)


@pytest.mark.parametrize(("agents", "cases"), [(13, 10), (19, 20), (40, 4)])
def test_the_best_split_known_of_many_inputs_is_found(agents, cases):
    """Of inputs without any clusters, where the two farthest lead astray every third time."""
    rng = np.random.default_rng(agents)
    case, network = Case("lfighter", head=HEAD), networks.star(agents)
    messages = rng.normal(size=(cases, agents, 8))
    found = apply(case.rule(), messages, network)[:, 0]
    for run, model in zip(messages, found, strict=True):
        expected, _ = composed(case.name, 0, dict(enumerate(run)), {}, 0, case.options)
        assert_close(model, expected, 1e-9)


def test_only_the_two_loudest_classes_count():
    # Class 1 is silent: whatever its rows say about who is alike changes nothing.
    network = networks.complete(5)
    messages = random_messages(np.random.default_rng(22), network)
    messages[:, [2, 3]] *= 1e-6
    before = apply(LFighter(head=(3, 2)), messages, network)
    messages[:, [2, 3]] *= -1
    messages[2:4, [2, 3]] *= 5
    after = apply(LFighter(head=(3, 2)), messages, network)
    rest = [0, 1, 4, 5, 6, 7]
    assert np.array_equal(before[:, rest], after[:, rest])


def test_poisoned_updates_that_resemble_each_other_are_left_out():
    rng = np.random.default_rng(23)
    for _ in range(10):
        messages = rng.normal(size=(7, 6))
        messages[4:] = 10 + 0.01 * rng.normal(size=(3, 6))
        found = apply(LFighter(head=(2, 3)), messages, networks.complete(7))
        assert_close(found, np.tile(messages[:4].mean(axis=0), (7, 1)), 1e-9)


@pytest.mark.parametrize("where", PATHS)
def test_of_two_equal_clusters_the_lowest_agents_is_kept(where):
    messages = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = apply(LFighter(head=(2, 1)), messages, networks.line(2), tuning=PATHS[where])
    assert_close(found, messages[[0, 0]], 1e-15)


def test_of_clusters_of_different_sizes_and_the_same_value_the_lowest_agents_is_kept():
    # Two inputs at 120° give 2/5 (1 + 1/2), three that are alike 3/5 (1 + 0).
    pair = np.array([[1, 0, 0, 0], [-1 / 2, np.sqrt(3) / 2, 0, 0]])
    three = np.array([[0, 0, 10, 0], [0, 0, 10, 0.1], [0, 0, 10, 0.2]])
    rule = LFighter(head=(2, 2))
    assert_close(rule.at(np.concatenate([pair, three])), pair.mean(axis=0), 1e-12)
    assert_close(rule.at(np.concatenate([three, pair])), three.mean(axis=0), 1e-12)


def test_a_message_in_half_precision_is_finite_though_its_sum_is_too_large_for_that():
    messages = torch.ones(5, 70_000, dtype=torch.float16)
    messages[:, 6:] *= torch.tensor([0.9, 0.9, 0.9, 1.0, 1.0], dtype=torch.float16).unsqueeze(-1)
    messages[:, :6] = torch.from_numpy(np.random.default_rng(27).normal(size=(5, 6)))
    rule = LFighter(head=HEAD)
    assert torch.equal(rule.at(messages), rule.at(messages.float()).half())


@pytest.mark.parametrize("on", ["models", "updates"])
@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1e25), (torch.float16, 6e4)])
def test_the_loudest_classes_are_found_though_their_norms_are_too_large(on, dtype, size):
    # What one input has in its rows of classes 1 and 2 sets it apart from the others.
    messages = 1e-2 * np.random.default_rng(28).normal(size=(6, 8))
    messages[5] = [0, 0, size, -size, -size, -size, 0, 0]
    rule, network = LFighter(head=HEAD, on=on), networks.complete(6)
    for where in PATHS.values():
        exchange = Exchange([rule], [network], tuning=where)
        found = []
        for kind in (dtype, torch.float64):
            zeros = torch.zeros(1, 6, 8, dtype=kind)
            sent = torch.from_numpy(messages).to(dtype).to(kind).unsqueeze(0)
            found.append(exchange(Sent(sent, None, {"model_before_step": zeros}))[0])
        assert_close(found[0].double(), found[1], 1e-4)
        assert found[1].abs().max() < 1


@pytest.mark.parametrize("where", PATHS)
def test_on_updates_it_looks_at_what_the_local_updates_changed(where):
    """As the loop on ``x_w − y_v``, near consensus too, with more inputs than can be enumerated."""
    rng, rule = np.random.default_rng(25), LFighter(head=HEAD, on="updates")
    for network, size in ((networks.two_castle(10), 1.0), (networks.complete(14), 1e-8)):
        before = rng.normal(size=8) + size * rng.normal(size=(network.agents, 8))
        messages = before + 0.3 * size * rng.normal(size=before.shape)
        remembered = {"model_before_step": torch.from_numpy(before)[None]}
        exchange = Exchange([rule], [network], tuning=PATHS[where])
        [found], _ = exchange(Sent(torch.from_numpy(messages)[None], None, remembered))
        for agent in range(network.agents):
            senders = [agent, *network.neighbours(agent)]
            updates = {v: before[agent] - messages[v] for v in sorted(senders)}
            _, given = composed("lfighter", agent, updates, {}, 0, {"head": HEAD})
            moved = sum(share * (messages[v] - messages[agent]) for v, share in given.items())
            assert_close(found[agent].numpy() - messages[agent], moved, 1e-9 * size + 1e-15)
            known = {"model_before_step": before[agent]}
            alone = rule.at(messages[senders], senders=senders, remembered=known)
            assert_close(alone, found[agent], 1e-14)


@pytest.mark.parametrize("where", PATHS)
def test_on_updates_biases_count_where_they_are_known(where):
    # Only the biases of classes 0 and 2 change much, so their rows say who is alike.
    rng, network = np.random.default_rng(26), networks.complete(6)
    messages = 0.01 * rng.normal(size=(1, 6, 9))
    messages[..., [6, 8]] += rng.normal(size=(6, 2))
    messages[..., 7] = 0
    zeros = torch.zeros(1, 6, 9, dtype=torch.float64)
    sent = Sent(torch.from_numpy(messages), None, {"model_before_step": zeros})
    found = {}
    for bias in (6, None):
        layer = OutputLayer(3, 2, bias=bias)
        options = {"layer": layer, "tuning": PATHS[where]}
        found[bias] = Exchange([LFighter(on="updates")], [network], **options)(sent)[0]
    silent = messages.copy()
    silent[..., [2, 3]] = 0  # as if class 1 were never among the two loudest
    sent = Sent(torch.from_numpy(silent), None, {"model_before_step": zeros})
    expected = Exchange([LFighter(head=HEAD, on="updates")], [network])(sent)[0]
    rest = [0, 1, 4, 5, 6, 7, 8]
    assert_close(found[6][..., rest], expected[..., rest], 1e-12)
    assert (found[None] - found[6]).abs().max() > 1e-3


@pytest.mark.parametrize("where", PATHS)
def test_the_output_layer_may_lie_anywhere(where):
    """Four numbers precede it, and a gap of one follows each of its rows."""
    network = networks.two_castle(10)
    messages = torch.from_numpy(random_messages(np.random.default_rng(24), network, (2,)))
    expected = LFighter(head=(3, 2))(messages, network)
    head, rest = messages[..., :6].unflatten(-1, (3, 2)), messages[..., 6:]
    rows = torch.cat([head, 100 * torch.randn(*head.shape[:-1], 1).double()], dim=-1).flatten(-2)
    moved = torch.cat([-50 * rows[..., :4], rows, rest], dim=-1)
    layer = OutputLayer(3, 2, stride=3, start=4)
    found, _ = exchanged(LFighter(), moved, network, PATHS[where], layer=layer)
    kept = found[..., 4:13].unflatten(-1, (3, 3))[..., :2].flatten(-2)
    assert torch.allclose(torch.cat([kept, found[..., 13:]], dim=-1), expected)
