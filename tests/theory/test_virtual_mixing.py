import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from theory_reference import (
    dense_beta,
    dense_lambda,
    dense_virtual,
    limit_perron,
    some_networks,
)

from bezoar import BezoarError, Network, networks, theory

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "aggregators.json").read_text())
kinds = st.sampled_from(["uniform", "mixing"])
mixings = st.sampled_from(["metropolis", "equal"])


@given(some_networks(), kinds, mixings)
def test_matrix_and_perron_vector_are_the_definitions(network, kind, mixing):
    matrix = theory.virtual_mixing(network, kind, mixing)
    perron = theory.perron_vector(network, kind, mixing)
    np.testing.assert_allclose(matrix.toarray(), dense_virtual(network, kind, mixing), atol=1e-14)
    np.testing.assert_allclose(perron, limit_perron(matrix.toarray()), atol=1e-9)
    np.testing.assert_allclose(perron @ matrix.toarray(), perron, atol=1e-14)
    assert perron.sum() == pytest.approx(1)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-14)
    if kind == "mixing":
        np.testing.assert_allclose(matrix.sum(axis=0), 1, atol=1e-14)


@given(some_networks(), kinds, mixings)
def test_lambda_and_beta_are_the_definitions(network, kind, mixing):
    found = theory.connectivity(network, kind, mixing)
    assert found.lam == pytest.approx(dense_lambda(network, kind, mixing), abs=1e-9)
    assert found.beta == pytest.approx(dense_beta(network, kind, mixing), abs=1e-9)
    regular = network.graph.subgraph(network.regular)
    assert found.components == nx.number_connected_components(regular)
    if found.components > 1:
        assert found.lam >= 1 - 1e-12


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['network']}, {case['seed']}")
def test_golden_values(case):
    graph = nx.empty_graph(case["agents"])
    graph.add_edges_from(case["edges"])
    network = Network(graph, case["poisoned"])
    uniform, mixing = (theory.connectivity(network, kind) for kind in ("uniform", "mixing"))
    rates = theory.contamination(network)
    found = {
        "delta": rates.delta,
        "delta_max": rates.delta_max,
        "lambda_prime": theory.mixing_gap(network),
        "lambda_uniform": uniform.lam,
        "beta_uniform": uniform.beta,
        "lambda_mixing": mixing.lam,
        "beta_mixing": mixing.beta,
    }
    assert found == pytest.approx(case["theory"], abs=1e-9)


@pytest.mark.parametrize(
    ("network", "uniform", "mixing", "gap"),
    [
        (networks.two_castle(), 0.219178, 0.222222, 0.111111),
        (networks.line(), None, None, 0.967371),
        (networks.fan(), 1.6, 1.555556, 0.869846),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_check_values_of_the_papers_networks(network, uniform, mixing, gap):
    for kind, expected in (("uniform", uniform), ("mixing", mixing)):
        lam = theory.connectivity(network, kind).lam
        if expected is None:
            assert lam > 1
        else:
            assert lam == pytest.approx(expected, abs=5e-7)
    assert theory.mixing_gap(network) == pytest.approx(gap, abs=5e-7)


@pytest.mark.parametrize("network", [networks.fan(), networks.line()])
@pytest.mark.parametrize("rule", sorted(theory.MATRIX_OF))
def test_fan_and_line_fail_the_theorem_for_every_rule(network, rule):
    assert theory.connectivity(network, theory.MATRIX_OF[rule]).lam > 1


@pytest.mark.parametrize("agents", [2, 3, 10, 49, 700])
@pytest.mark.parametrize("poisoned", [0, 1])
def test_a_complete_network_is_as_connected_as_can_be(agents, poisoned):
    network = networks.complete(agents=agents, poisoned=poisoned)
    found = theory.connectivity(network, "uniform")
    assert (found.lam, found.beta, found.components) == (0, 0, 1)


def test_one_regular_agent_left():
    found = theory.connectivity(networks.star(agents=4, poisoned=3))
    assert (found.lam, found.beta, found.components) == (0, 0, 1)


def test_pieces_keep_their_share_of_the_perron_vector():
    network = networks.line(agents=5, poisoned=[1])
    np.testing.assert_allclose(
        theory.perron_vector(network), [1 / 4, 3 / 4 * 2 / 7, 3 / 4 * 3 / 7, 3 / 4 * 2 / 7]
    )


def test_an_unknown_kind_is_refused():
    with pytest.raises(BezoarError, match=r"kind: 'uniforn' .* allowed: uniform"):
        theory.connectivity(networks.fan(), "uniforn")
    with pytest.raises(BezoarError, match="mixing"):
        theory.connectivity(networks.fan(), "mixing", mixing="lazy")
