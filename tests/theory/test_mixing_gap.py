import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from theory_reference import some_networks

from bezoar import Network, networks, theory
from bezoar.theory import _connectivity


def literal(network: Network, mixing: str = "metropolis") -> float:
    E = network.mixing(mixing).toarray()
    return np.linalg.norm(E - np.ones_like(E) / len(E), ord=2)


@given(some_networks(), st.sampled_from(["metropolis", "equal"]))
def test_it_is_the_definition(network, mixing):
    assert theory.mixing_gap(network, mixing) == pytest.approx(literal(network, mixing), abs=1e-12)


@pytest.fixture
def sparse_solver(monkeypatch):
    """The solver for large networks, for small ones too."""
    monkeypatch.setattr(_connectivity, "DENSE_AGENTS", 30)


@pytest.mark.parametrize(
    "network",
    [
        networks.ring(agents=60),
        networks.line(agents=90),
        networks.star(agents=80),
        networks.torus(rows=8, columns=9),
        networks.fan(agents=50),
        networks.random_regular(agents=120, degree=5),
        networks.erdos_renyi(agents=90, probability=0.2),
        networks.complete(agents=40),
        networks.two_castle(agents=44),
    ],
    ids=lambda network: network.name,
)
@pytest.mark.parametrize("restarts", [_connectivity.RESTARTS, 1])
def test_the_sparse_solvers_agree_with_the_dense_one(network, restarts, sparse_solver, monkeypatch):
    monkeypatch.setattr(_connectivity, "RESTARTS", restarts)
    found = theory.mixing_gap(network)
    assert found == pytest.approx(literal(network), abs=1e-8)
    assert found == theory.mixing_gap(network)


def test_an_end_near_minus_one_counts(sparse_solver, monkeypatch):
    network = Network(nx.complete_bipartite_graph(20, 20))
    for restarts in (_connectivity.RESTARTS, 1):
        monkeypatch.setattr(_connectivity, "RESTARTS", restarts)
        assert theory.mixing_gap(network) == pytest.approx(19 / 21, abs=1e-9)


@pytest.mark.parametrize(
    "graph",
    [
        nx.complete_bipartite_graph(9, 11),
        nx.cycle_graph(31),
        nx.barbell_graph(9, 4),
        nx.hypercube_graph(4),
        nx.star_graph(20),
    ],
    ids=["bipartite", "ring", "barbell", "cube", "star"],
)
def test_factorising_finds_the_larger_end(graph):
    network = Network(nx.convert_node_labels_to_integers(graph))
    start = np.random.default_rng(0).standard_normal(network.agents)
    options = {"v0": start, "return_eigenvectors": False, "tol": 1e-9}
    found = _connectivity._by_factorising(network.mixing().tocsc(), options)
    assert found == pytest.approx(literal(network), abs=1e-9)


def test_a_long_ring():
    agents = 5000
    expected = (1 + 2 * np.cos(2 * np.pi / agents)) / 3
    assert theory.mixing_gap(networks.ring(agents=agents)) == pytest.approx(expected, abs=1e-12)


def test_who_is_poisoned_plays_no_part():
    fan = networks.fan(agents=12)
    assert theory.mixing_gap(fan) == theory.mixing_gap(fan.with_poisoned([]))
