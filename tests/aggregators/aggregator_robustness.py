"""What robust rules can claim about outliers, broken messages and the end of training.

Classes of tests to inherit from, as in ``aggregator_properties``.
"""

from itertools import combinations, product

import numpy as np
import pytest
import torch
from aggregator_inputs import TWO_PATHS, apply, assert_close, random_messages

from bezoar import networks

PRECISIONS = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


class Bounded:
    """One input that goes to infinity leaves the outcome near the others.

    ``margin`` is how far outside the box around the regular inputs the outcome may lie.
    """

    margin = 1e-9

    @pytest.mark.parametrize("size", [1e6, 1e12, 1e100])
    def test_one_input_going_to_infinity(self, case, size):
        rng = np.random.default_rng(11)
        some = (networks.complete(7, {3}), networks.two_castle(10), networks.line(9))
        for network in case.possible_on(*some):
            messages = random_messages(rng, network)
            messages[list(network.poisoned)] = size * rng.normal(size=messages.shape[-1])
            regular = list(network.regular)
            for name, constants in TWO_PATHS.items():
                found = apply(case.rule(), messages, network, tuning=constants)[regular]
                assert (found >= messages[regular].min(axis=0) - self.margin).all(), name
                assert (found <= messages[regular].max(axis=0) + self.margin).all(), name


class _BadMessages:
    """A message that is not finite. Agents that do not hear its sender never notice."""

    def hears(self, network, agent):
        return list(network.closed_neighbourhood(agent))

    @PRECISIONS
    def test_a_message_that_is_not_finite(self, case, dtype):
        some = (networks.line(10), networks.two_castle(10), networks.star(9, {0}))
        whole_or_one_coordinate = (slice(None), 3)
        for network, value, coordinates in product(
            case.possible_on(*some), (np.nan, np.inf, -np.inf), whole_or_one_coordinate
        ):
            messages = random_messages(np.random.default_rng(12), network).astype(np.float32)
            [bad] = network.poisoned
            clean = apply(case.rule(), messages, network, dtype)
            messages[bad, coordinates] = value
            far = [v for v in range(network.agents) if v not in self.hears(network, bad)]
            expected, told = self.expected(case, messages.astype(float), network, bad)
            # An iteration that stops by a tolerance may stop elsewhere beside other runs.
            tolerance = 1e-5 if dtype == torch.float32 or case.name == "rfa" else 1e-9
            for name, constants in TWO_PATHS.items():
                found = apply(case.rule(), messages, network, dtype, tuning=constants)
                assert_close(found[far], clean[far], tolerance, name)
                assert_close(found[told], expected[told], tolerance, name)
                silent = [v for v in self.hears(network, bad) if v not in told]
                assert not np.isfinite(found[silent]).all(axis=1).any(), name


class SpreadsBadMessages(_BadMessages):
    """Everyone who hears it has it."""

    def expected(self, case, messages, network, bad):
        return messages, []


class LeavesOutBadMessages(_BadMessages):
    """As if the sender had sent nothing."""

    def expected(self, case, messages, network, bad):
        expected, _ = case.loop(messages, network.with_poisoned([]), absent={bad})
        told = self.hears(network, bad)
        if case.options.get("keep_own"):
            told.remove(bad)
        return expected, told

    def test_bad_value_anywhere_in_a_long_message(self, case):
        length = 300
        for bad, coordinate in product(range(6), (0, 1, length - 1)):
            network = networks.complete(6, {bad})
            # Not shifted as poisoned ones are elsewhere: also the most central one may be bad.
            messages = np.random.default_rng(13).normal(size=(6, length))
            messages[bad, coordinate] = np.nan
            expected, told = self.expected(case, messages, network, bad)
            for name, constants in TWO_PATHS.items():
                found = apply(case.rule(), messages, network, tuning=constants)
                assert_close(found[told], expected[told], case.tolerance * 10, name)


class SurvivesMostlyBadMessages:
    """One finite message is enough; without any the outcome is not finite."""

    def test_any_number_of_bad_messages(self, case):
        network = networks.complete(6, poisoned=0)
        clean = random_messages(np.random.default_rng(14), network)
        for count in range(1, 7):
            for bad in combinations(range(6), count):
                messages = clean.copy()
                messages[list(bad)] = np.nan
                for name, constants in TWO_PATHS.items():
                    found = apply(case.rule(), messages, network, tuning=constants)
                    if count == 6:
                        assert not np.isfinite(found).any()
                        continue
                    expected = self.expected_of_rest(case, messages, network, set(bad))
                    assert_close(found, expected, case.tolerance * 10, f"{name}, bad {bad}")

    def expected_of_rest(self, case, messages, network, bad):
        return case.loop(messages, network, absent=bad)[0]


class TakesNaNForInfinity(_BadMessages):
    """It is sorted to the end and dropped there."""

    def expected(self, case, messages, network, bad):
        sortable = np.where(np.isnan(messages), np.inf, messages)
        return case.loop(sortable, network)[0], self.hears(network, bad)


class IgnoresBadMessages(_BadMessages):
    """A neighbour's moves nothing but is counted; an own one stays."""

    def expected(self, case, messages, network, bad):
        told = [v for v in self.hears(network, bad) if v != bad]
        return case.loop(messages, network)[0], told


class CountsBadMessages(_BadMessages):
    """It is the first to be dropped, by whoever hears it, and by its sender."""

    def expected(self, case, messages, network, bad):
        return case.loop(messages, network)[0], self.hears(network, bad)


class ResolvesConsensus:
    """Models that agree to many digits are told apart by the digits in which they do not.

    Judged by the differences, against the loop over exact differences. A float32 model cannot
    hold more than its own rounding, which the tolerance allows beside 2 % of the differences.
    """

    @pytest.mark.parametrize("apart", [1e-1, 1e-3, 1e-5, 1e-6])
    def test_float32_near_consensus(self, case, apart):
        self._near_consensus(case, apart, torch.float32, 0.02 * apart + 2.5e-7)

    @pytest.mark.parametrize("apart", [1e-1, 1e-5, 1e-7, 1e-10])
    def test_float64_near_consensus(self, case, apart):
        slack = 1e-3 if case.name == "rfa" else 1e-9
        self._near_consensus(case, apart, torch.float64, slack * apart + 1e-15)

    def _near_consensus(self, case, apart, dtype, tolerance):
        some = (networks.two_castle(10), networks.line(10), networks.fan(10))
        for network in case.possible_on(*some):
            rng = np.random.default_rng(15)
            common = rng.normal(size=100)
            common *= 100 / np.linalg.norm(common)
            moves = random_messages(rng, network, (2,), 100)
            moves *= 100 * apart / np.linalg.norm(moves, axis=-1).max()
            messages = torch.from_numpy(common + moves).to(dtype).double().numpy()
            expected = np.stack([self._moved(case, run, network, apart) for run in messages])
            for name, constants in TWO_PATHS.items():
                found = apply(case.rule(100 * apart), messages, network, dtype, tuning=constants)
                error = found.astype(float) - messages[:, :1] - expected
                worst = np.linalg.norm(error, axis=-1).max()
                assert worst <= 100 * tolerance, (name, network.name)

    def _moved(self, case, messages, network, apart):
        """The loop's outcome relative to the first message; subtracting that one is exact."""
        if case.name == "lfighter":  # its similarities are about the origin
            return case.loop(messages, network)[0] - messages[0]
        return case.loop(messages - messages[0], network, scale=100 * apart)[0]


class SeesPastAnOutlier:
    """An outlier of 1e8 does not blur the differences among the rest."""

    @PRECISIONS
    def test_outlier_beside_near_identical_inputs(self, case, dtype):
        spread = 1e-3
        for seed in range(5):
            rng = np.random.default_rng(seed)
            network = networks.complete(8, {2, 6})
            messages = rng.normal(size=8) + spread * rng.normal(size=(8, 8))
            messages[6] += 10 * spread * rng.normal(size=8)
            messages[2] = 1e8 * rng.normal(size=8)
            messages = torch.from_numpy(messages).to(dtype).double().numpy()
            near = [v for v in range(8) if v != 2]
            expected, _ = case.loop(messages, network, scale=spread)
            rounding = 3e-6 if dtype == torch.float32 else 0
            slack = 1e-2 if case.name == "rfa" else 1e-5
            for name, constants in TWO_PATHS.items():
                found = apply(case.rule(spread), messages, network, dtype, tuning=constants)
                assert_close(found[near], expected[near], slack * spread + rounding, name)


class FollowsTheMajority:
    """Regular inputs that are all the same, and a strict majority, are returned exactly."""

    def test_unanimous_majority(self, case):
        rng = np.random.default_rng(16)
        truth = rng.normal(size=8)
        some = (
            networks.two_castle(10, 3),
            networks.fan(10),
            networks.lower_bound(6, 6),
            networks.complete(9, 4),
        )
        for network in case.possible_on(*some):
            for size in (1e-3, 1.0, 1e3, 1e9):
                messages = np.tile(truth, (network.agents, 1))
                shape = (len(network.poisoned), 8)
                messages[list(network.poisoned)] += size * rng.normal(size=shape)
                found = apply(case.rule(), messages, network)
                told = [v for v in range(network.agents) if self.is_majority(case, network, v)]
                assert set(network.regular) & set(told)
                slack = 1e-4 * min(size, 1.0) if case.name == "rfa" else 1e-12
                assert_close(found[told], messages[[network.regular[0]] * len(told)], slack)

    def is_majority(self, case, network, agent):
        inputs = network.closed_neighbourhood(agent)
        return 2 * sum(v in network.regular for v in inputs) > len(inputs)
