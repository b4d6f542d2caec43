from math import inf, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from theory_reference import dense_virtual, some_networks

from bezoar import BezoarError, aggregators, networks, theory
from bezoar.theory import _contraction


def orders(delta_max):
    return {row.aggregator: row for row in theory.contraction_orders(delta_max)}


def test_table_1():
    table = orders(0.1)
    assert {rule: row.value for rule, row in table.items()} == pytest.approx(
        {
            "trimmed_mean": 0.1 / 0.8,
            "faba": 0.1 / 0.7,
            "centered_clipping": sqrt(0.1),
            "clipped_gossip": sqrt(0.09),
            "ios": 0.1 / 0.7,
        }
    )
    assert {rule for rule, row in table.items() if row.matrix == "mixing"} == {
        "ios",
        "clipped_gossip",
    }
    assert all(row.order.startswith("O(") for row in table.values())


def test_orders_are_infinite_where_the_denominator_is_not_positive():
    assert orders(theory.contamination(networks.fan()).delta_max)["ios"].value == inf
    assert orders(1 / 3)["trimmed_mean"].value == pytest.approx(1)
    assert orders(0.5)["trimmed_mean"].value == inf
    assert orders(0.4)["faba"].value == inf
    assert {row.value for row in theory.contraction_orders(0)} == {0}


def test_a_rate_outside_its_range_is_refused():
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(BezoarError, match="delta_max"):
            theory.contraction_orders(rate)


@given(some_networks(), st.sampled_from(["uniform", "mixing"]), st.integers(0, 100))
def test_measured_contraction_is_the_definition(network, kind, seed):
    rng = np.random.default_rng(seed)
    sent, made = rng.standard_normal((2, network.agents, 3))
    M = dense_virtual(network, kind)
    regular = list(network.regular)
    expected = []
    for place, w in enumerate(regular):
        centre = sum(M[place, other] * sent[v] for other, v in enumerate(regular))
        heard = [v for v in network.closed_neighbourhood(w) if v in regular]
        spread = max(np.linalg.norm(sent[v] - centre) for v in heard)
        missed = np.linalg.norm(made[w] - centre)
        expected.append(missed / spread if len(heard) > 1 else inf)
    found = theory.measured_contraction(sent, made, network, kind)
    np.testing.assert_allclose(found.ratios, expected, rtol=1e-9)
    assert found.rho == found.ratios.max()
    assert found.agent == regular[int(np.argmax(found.ratios))]


@given(some_networks(), st.sampled_from(["uniform", "mixing"]), st.integers(0, 100))
def test_moving_and_stretching_everything_changes_nothing(network, kind, seed):
    rng = np.random.default_rng(seed)
    sent, made = rng.standard_normal((2, network.agents, 3))
    before = theory.measured_contraction(sent, made, network, kind)
    after = theory.measured_contraction(5 * sent + 2, 5 * made + 2, network, kind)
    np.testing.assert_allclose(after.ratios, before.ratios, rtol=1e-9)


@given(some_networks(), st.sampled_from(["uniform", "mixing"]))
def test_the_combination_itself_needs_nothing(network, kind):
    sent = np.random.default_rng(1).standard_normal((network.agents, 4)) + 100
    made = sent.copy()
    made[list(network.regular)] = dense_virtual(network, kind) @ sent[list(network.regular)]
    for dtype in (np.float64, np.float32):
        found = theory.measured_contraction(sent, made.astype(dtype), network, kind)
        assert found.rho == 0


def test_unanimous_regular_inputs():
    network = networks.fan(agents=5)
    sent = np.ones((5, 2))
    same = theory.measured_contraction(sent, sent, network, "uniform")
    assert same.rho == 0
    made = sent.copy()
    made[2] += 1e-6
    off = theory.measured_contraction(sent, made, network, "uniform")
    assert (off.rho, off.agent) == (inf, 2)
    made[2] = np.nan
    assert theory.measured_contraction(sent, made, network, "uniform").rho == inf


def test_many_edges_are_taken_in_pieces(monkeypatch):
    network = networks.erdos_renyi(agents=20, probability=0.4, poisoned=3)
    sent, made = np.random.default_rng(0).standard_normal((2, network.agents, 3))
    whole = theory.measured_contraction(sent, made, network, "uniform")
    monkeypatch.setattr(_contraction, "CHUNK", 20)
    pieces = theory.measured_contraction(sent, made, network, "uniform")
    np.testing.assert_array_equal(pieces.ratios, whole.ratios)


def test_runs_are_leading_dimensions():
    network = networks.two_castle()
    sent, made = np.random.default_rng(0).standard_normal((2, 3, 2, network.agents, 4))
    found = theory.measured_contraction(sent, made, network, "mixing")
    assert found.ratios.shape == (3, 2, 9)
    alone = theory.measured_contraction(sent[1, 1], made[1, 1], network, "mixing")
    np.testing.assert_array_equal(found.ratios[1, 1], alone.ratios)


@pytest.mark.parametrize("rule", sorted(theory.MATRIX_OF))
def test_rules_without_poisoned_agents_approximate_their_own_matrix(rule):
    # Q_w = 0, and thresholds beyond all distances: every rule but RFA is its combination.
    network = networks.two_castle(poisoned=0)
    options = {"threshold": 1e9} if "clip" in rule else {}
    sent = torch.randn(network.agents, 3, dtype=torch.float64, generator=torch.manual_seed(0))
    made = aggregators.create(rule, **options)(sent, network)
    kind = theory.MATRIX_OF[rule]
    found = theory.measured_contraction(sent.numpy(), made.numpy(), network, kind)
    assert found.rho < (1 if rule == "rfa" else 1e-12)


def test_wrong_shapes_are_refused():
    with pytest.raises(BezoarError, match=r"expected one shape \[..., 10, D\]"):
        theory.measured_contraction(np.ones((9, 2)), np.ones((9, 2)), networks.fan(), "uniform")


@pytest.mark.parametrize("shape", [(10, 0), (0, 10, 3)])
def test_no_exchange_and_no_coordinate_are_refused(shape):
    with pytest.raises(BezoarError, match="at least one exchange and D of at least 1"):
        theory.measured_contraction(np.ones(shape), np.ones(shape), networks.fan(), "uniform")
