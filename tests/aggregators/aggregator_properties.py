"""What rules can claim, each as a class of tests to inherit from with ``cases`` set.

Every property compares with the plain loop or with another outcome of the same rule; none knows
how the package computes it.
"""

import aggregator_reference as reference
import networkx as nx
import numpy as np
import torch
from aggregator_inputs import (
    PATHS,
    TWO_PATHS,
    Spy,
    apply,
    assert_close,
    checked,
    exchanged,
    random_messages,
    random_network,
    roomy_situations,
    situations,
)
from hypothesis import given
from hypothesis import strategies as st

from bezoar import networks


def each_run(messages):
    return messages.reshape(-1, *messages.shape[-2:])


class EqualsTheLoop:
    @checked
    @given(situation=situations())
    def test_equals_the_loop(self, case, situation):
        network = case.fit(situation.network)
        found = apply(case.rule(), situation.messages, network)
        assert found.shape == situation.messages.shape
        for run, got in zip(each_run(situation.messages), each_run(found), strict=True):
            expected, _ = case.loop(run, network)
            assert_close(got, expected, case.tolerance * np.abs(run).max())

    def test_every_path_equals_the_loop(self, case):
        rng = np.random.default_rng(5)
        for agents in (3, 9, 14):
            network = case.fit(random_network(rng, agents, 0.3, agents // 4))
            # Long enough for the coordinates, too, to be taken in several chunks.
            messages = random_messages(rng, network, (2,), 600)
            expected = np.stack([case.loop(run, network)[0] for run in messages])
            for name, constants in PATHS.items():
                found = apply(case.rule(), messages, network, tuning=constants)
                assert_close(found, expected, case.tolerance * np.abs(messages).max(), name)

    def test_several_networks_at_once(self, case):
        rng = np.random.default_rng(6)
        nets = [case.fit(random_network(rng, 9, density, 2)) for density in (0.0, 0.3, 0.8)]
        nets = [nets[0], nets[1], nets[0], nets[2]]
        messages = np.stack([random_messages(rng, network) for network in nets])
        pairs = zip(messages, nets, strict=True)
        expected = np.stack([case.loop(run, network)[0] for run, network in pairs])
        for name, constants in PATHS.items():
            found, _ = exchanged(case.rule(), torch.from_numpy(messages), nets, constants)
            assert_close(found, expected, case.tolerance * np.abs(messages).max(), name)

    def test_the_messages_are_left_alone(self, case):
        rng = np.random.default_rng(7)
        network = case.fit(random_network(rng, 6, 0.5, 1))
        messages = torch.from_numpy(random_messages(rng, network, (2,)))
        before = messages.clone()
        for constants in PATHS.values():
            exchanged(case.rule(), messages, network, constants)
        assert torch.equal(messages, before)


class BreaksTiesByIndex:
    @checked
    @given(situation=situations(batches=[()]), seed=st.integers(0, 2**32 - 1))
    def test_equals_the_loop_where_everything_ties(self, case, situation, seed):
        # Messages of few small integers: many inputs coincide, many distances are equal.
        rng = np.random.default_rng(seed)
        network = case.fit(situation.network)
        messages = rng.integers(-1, 2, size=(network.agents, 2)).astype(float)
        expected, _ = case.loop(messages, network)
        assert_close(apply(case.rule(), messages, network), expected, 1e-9)


class Symmetric:
    """Relabelling the agents relabels the outcome."""

    @checked
    @given(situation=roomy_situations(), seed=st.integers(0, 2**32 - 1))
    def test_relabelling_agents(self, case, situation, seed):
        network, messages = situation.network, situation.messages
        new = np.random.default_rng(seed).permutation(network.agents)
        graph = _relabelled(network, new)
        moved = np.empty_like(messages)
        moved[new] = messages
        found = apply(case.rule(), moved, graph)[new]
        scale = case.tolerance * np.abs(messages).max()
        assert_close(found, apply(case.rule(), messages, network), scale)


def _relabelled(network, new):
    graph = nx.relabel_nodes(network.graph, {old: int(new[old]) for old in network.graph})
    return networks.Network(graph, [int(new[agent]) for agent in network.poisoned])


class Scales:
    """Scaling the messages, and with them the thresholds, scales the outcome."""

    @checked
    @given(situation=situations(), factor=st.sampled_from([1e-6, 0.3, -2.5, 1e5]))
    def test_scaling_messages(self, case, situation, factor):
        network, messages = case.fit(situation.network), situation.messages
        found = apply(case.rule(factor), factor * messages, network)
        expected = factor * apply(case.rule(), messages, network)
        assert_close(found, expected, case.tolerance * abs(factor) * np.abs(messages).max())


class Translates:
    """Moving all messages by one vector moves the outcome by it."""

    @checked
    @given(situation=situations(), size=st.sampled_from([1.0, 1e3]))
    def test_translating_messages(self, case, situation, size):
        network, messages = case.fit(situation.network), situation.messages
        move = size * np.random.default_rng(3).normal(size=messages.shape[-1])
        found = apply(case.rule(), messages + move, network)
        expected = apply(case.rule(), messages, network) + move
        assert_close(found, expected, case.tolerance * (size + np.abs(messages).max()))


class KeepsConsensus:
    """Where all messages are the same, nothing changes."""

    def test_identical_messages(self, case):
        for network in (networks.ring(3), networks.two_castle(10), networks.complete(13)):
            for value in (0.0, 1.0, -37.3, 1e-30):
                row = np.full(7, value)
                messages = np.tile(row, (network.agents, 1))
                for constants in PATHS.values():
                    found = apply(case.rule(), messages, network, tuning=constants)
                    assert_close(found, messages, 1e-14 * abs(value))


class AveragesWithoutPoison:
    """With nobody poisoned the rule is ``average``, the name of a reference rule."""

    @checked
    @given(situation=situations(batches=[()]))
    def test_without_poisoned_inputs(self, case, situation):
        network, messages = situation.network.with_poisoned([]), situation.messages
        mixing = {k: v for k, v in case.options.items() if k == "mixing"}
        expected, _ = reference.aggregate(self.average, messages, network, **mixing)
        assert_close(apply(case.rule(), messages, network), expected, 1e-12 * 10)


class WeighsInputs:
    """The outcome is a combination of the inputs by a probability vector."""

    @checked
    @given(situation=situations())
    def test_weights_are_probabilities_over_the_neighbourhood(self, case, situation):
        network, messages = case.fit(situation.network), situation.messages
        for constants in TWO_PATHS.values():
            spy = Spy(case.rule())
            sent = torch.from_numpy(messages)
            found, share = exchanged(spy, sent, network, constants, share=True)
            assert spy.seen
            for neighbourhood, weights in spy.seen:
                padding = ~neighbourhood.mask.expand(weights.shape)
                assert bool((weights[padding] == 0).all())
                assert float(weights.min()) >= -1e-12
                assert float((weights.sum(-1) - 1).abs().max()) <= 1e-12
            if constants.dense_advantage:
                found, share = each_run(found.numpy()), share.view(-1, network.agents).numpy()
                self._combines(neighbourhood, weights, each_run(messages), found)
                behind = np.isin(neighbourhood.index.numpy(), network.poisoned)
                assert_close(share, (weights.numpy() * behind).sum(-1) + 0 * share, 1e-12)

    def _combines(self, neighbourhood, weights, runs, found):
        index = neighbourhood.index.expand(len(runs), -1, -1).numpy()
        weights = weights.expand(len(runs), -1, -1).numpy()
        for run, slots, given_weights, models in zip(runs, index, weights, found, strict=True):
            for agent, model in enumerate(models):
                expected = given_weights[agent] @ run[slots[agent]]
                assert_close(model, expected, 1e-10 * np.abs(run).max())

    @checked
    @given(situation=situations(batches=[(), (2,)]))
    def test_share_is_the_weight_of_poisoned_inputs(self, case, situation):
        network, messages = case.fit(situation.network), situation.messages
        for name, constants in TWO_PATHS.items():
            sent = torch.from_numpy(messages)
            _, share = exchanged(case.rule(), sent, network, constants, share=True)
            assert share.shape == messages.shape[:-1]
            for run, got in zip(each_run(messages), share.view(-1, network.agents), strict=True):
                _, weights = case.loop(run, network)
                expected = weights[:, list(network.poisoned)].sum(axis=1)
                if not np.isnan(expected).any():
                    assert_close(got.numpy(), expected, 1e-9, name)
            assert float(share.min()) >= 0
            assert float(share.max()) <= 1 + 1e-12


class SharesSensibly:
    """For rules by coordinates, the share of poisoned values among those kept."""

    @checked
    @given(situation=situations())
    def test_share_lies_between_nothing_and_all(self, case, situation):
        network = case.fit(situation.network)
        messages = torch.from_numpy(situation.messages)
        for constants in TWO_PATHS.values():
            models, share = exchanged(case.rule(), messages, network, constants, share=True)
            assert torch.equal(models, exchanged(case.rule(), messages, network, constants)[0])
            narrow = messages.float()
            asked, _ = exchanged(case.rule(), narrow, network, constants, share=True)
            assert torch.equal(asked, exchanged(case.rule(), narrow, network, constants)[0])
            assert share.shape == messages.shape[:-1]
            assert float(share.min()) >= 0
            assert float(share.max()) <= 1
            hears_poison = torch.from_numpy(network.poisoned_inputs > 0)
            assert bool((share[..., ~hears_poison] == 0).all())

    def test_share_without_poisoned_agents_is_zero(self, case):
        network = networks.two_castle(6, poisoned=0)
        messages = torch.randn(6, 5, dtype=torch.float64, generator=torch.manual_seed(0))
        _, share = exchanged(case.rule(), messages, network, share=True)
        assert bool((share == 0).all())
