"""Mixing matrices."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezoar import BezoarError, Network, networks

KINDS = pytest.mark.parametrize("kind", ["metropolis", "equal"])


@st.composite
def connected(draw):
    agents = draw(st.integers(1, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(agents, draw(st.sampled_from([0.0, 0.3, 0.9])), seed=seed)
    order = rng.permutation(agents).tolist()
    graph.add_edges_from(pairwise(order))
    return graph


def by_formula(graph, kind):
    degree = dict(graph.degree)
    matrix = np.zeros((len(graph), len(graph)))
    for w in graph:
        for v in graph:
            if graph.has_edge(w, v):
                largest = (
                    max(degree[w], degree[v]) if kind == "metropolis" else max(degree.values())
                )
                matrix[w, v] = 1 / (largest + 1)
    for w in graph:
        matrix[w, w] = 1 - sum(matrix[w, v] for v in graph if v != w)
    return matrix


@KINDS
@settings(deadline=None, derandomize=True, max_examples=50)
@given(graph=connected())
def test_doubly_stochastic_symmetric_and_as_defined(kind, graph):
    matrix = Network(graph).mixing(kind).toarray()
    np.testing.assert_allclose(matrix, by_formula(graph, kind), atol=1e-15)
    np.testing.assert_allclose(matrix.sum(axis=0), 1, atol=1e-14)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-14)
    assert np.array_equal(matrix, matrix.T)
    support = nx.to_numpy_array(graph, nodelist=range(len(graph))) + np.eye(len(graph))
    assert np.array_equal(matrix > 0, support > 0)


@KINDS
def test_mixing_keeps_the_average_and_brings_agents_together(kind):
    values = np.random.default_rng(0).normal(size=(10, 4))
    matrix = networks.line(10).mixing(kind)
    mixed = values
    for _ in range(2000):
        mixed = matrix @ mixed
    np.testing.assert_allclose(mixed.mean(axis=0), values.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(mixed, np.tile(values.mean(axis=0), (10, 1)), atol=1e-6)


def test_metropolis_is_the_default_and_differs_from_equal():
    network = networks.fan(6)
    default = network.mixing().toarray()
    assert np.array_equal(default, network.mixing("metropolis").toarray())
    assert not np.allclose(default, network.mixing("equal").toarray())


def test_unknown_kind_is_refused():
    with pytest.raises(
        BezoarError, match="mixing: 'metropolos' is not known; allowed: metropolis,"
    ):
        networks.ring(4).mixing("metropolos")
