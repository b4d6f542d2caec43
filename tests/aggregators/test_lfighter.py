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


@pytest.mark.parametrize(("agents", "cases"), [(13, 20), (19, 60), (40, 10)])
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
