from itertools import combinations
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_reference import dense_lambda, limit_perron, some_networks

from bezoar import BezoarError, Network, networks, theory


def every_placement(network, count):
    """Brute force over all placements at once: δ_max, λ uniform and λ mixing, literally."""
    W = network.agents
    sets = list(combinations(range(W), count))
    keep = np.ones((len(sets), W))
    for row, placement in enumerate(sets):
        keep[row, list(placement)] = 0
    closed = network.adjacency.toarray() + np.eye(W)
    E = network.mixing().toarray()
    both = keep[:, :, None] * keep[:, None, :]
    inputs = (closed * both).sum(axis=2)
    rate = (1 - inputs / closed.sum(axis=1)) * keep
    poisoned_weight = (E * (1 - keep[:, None, :])).sum(axis=2) * keep
    uniform = closed * both / np.maximum(inputs, 1)[:, :, None]
    mixing = E * both + np.eye(W) * poisoned_weight[:, :, None]

    def lam(M):
        p = limit_perron(M) * W / (W - count)
        return (np.abs(M - p[:, None, :] * both.any(axis=2)[:, :, None]).sum(axis=2) * keep).max(1)

    return sets, rate.max(axis=1), lam(uniform), lam(mixing)


def check(network, count):
    sets, rates, uniform, mixing = every_placement(network, count)
    found = (
        (theory.worst_contamination(network, count), rates),
        (theory.worst_connectivity(network, count, "uniform"), uniform),
        (theory.worst_connectivity(network, count, "mixing"), mixing),
    )
    for worst, values in found:
        assert worst.exact
        assert worst.gap == 0
        assert worst.value == pytest.approx(values.max(), abs=1e-9)
        assert values[sets.index(worst.poisoned)] == pytest.approx(worst.value, abs=1e-9)


def check_search(network, count):
    sets, _, uniform, _ = every_placement(network, count)
    # Too little effort to try them all: a placement and a bound that brackets the truth.
    searched = theory.worst_connectivity(network, count, "uniform", effort=0)
    assert searched.value == pytest.approx(uniform[sets.index(searched.poisoned)], abs=1e-9)
    assert searched.value - 1e-9 <= uniform.max() <= searched.bound + 1e-9
    assert searched.gap == pytest.approx(searched.bound - searched.value, abs=1e-9)
    if searched.exact:
        assert searched.value == pytest.approx(uniform.max(), abs=1e-9)


ATLAS = [g for g in nx.graph_atlas_g() if g.number_of_nodes() >= 2 and nx.is_connected(g)]


@pytest.mark.parametrize("agents", range(2, 8))
def test_it_equals_brute_force_on_small_networks(agents):
    graphs = [graph for graph in ATLAS if graph.number_of_nodes() == agents]
    assert len(graphs) == {2: 1, 3: 2, 4: 6, 5: 21, 6: 112, 7: 853}[agents]
    for graph in graphs if agents < 7 else graphs[::3]:
        network = Network(graph)
        for count in range(agents):
            check(network, count)


@pytest.mark.parametrize("agents", range(2, 8))
def test_a_search_brackets_brute_force(agents):
    for graph in [graph for graph in ATLAS if graph.number_of_nodes() == agents][::9]:
        network = Network(graph)
        for count in range(agents):
            check_search(network, count)


@given(some_networks(largest=6), st.data())
@settings(max_examples=30)
def test_the_brute_force_is_the_definition(network, data):
    count = data.draw(st.integers(0, network.agents - 1))
    sets, rates, uniform, mixing = every_placement(network, count)
    chosen = data.draw(st.integers(0, len(sets) - 1))
    placed = network.with_poisoned(sets[chosen])
    assert rates[chosen] == pytest.approx(theory.contamination(placed).delta_max)
    assert uniform[chosen] == pytest.approx(dense_lambda(placed, "uniform"), abs=1e-9)
    assert mixing[chosen] == pytest.approx(dense_lambda(placed, "mixing"), abs=1e-9)


@pytest.mark.parametrize("mixing", ["metropolis", "equal"])
@given(network=some_networks(largest=7), data=st.data())
@settings(max_examples=30)
def test_mixing_is_exact_for_either_matrix(mixing, network, data):
    count = data.draw(st.integers(0, network.agents - 1))
    worst = theory.worst_connectivity(network, count, "mixing", mixing)
    placements = combinations(range(network.agents), count)
    values = [
        theory.connectivity(network.with_poisoned(placement), "mixing", mixing).lam
        for placement in placements
    ]
    assert worst.value == pytest.approx(max(values), abs=1e-9)
    there = theory.connectivity(network.with_poisoned(worst.poisoned), "mixing", mixing)
    assert there.lam == pytest.approx(worst.value, abs=1e-9)


@pytest.mark.parametrize(
    ("network", "count"),
    [
        (networks.random_regular(agents=400, degree=6), 9),
        (networks.erdos_renyi(agents=200, probability=0.1), 12),
        (networks.star(agents=300), 3),
        (networks.torus(rows=20, columns=20), 4),
        (networks.complete(agents=60), 25),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_large_networks(network, count):
    assert comb(network.agents, count) > 10**6 or network.name == "star"
    rate = theory.worst_contamination(network, count)
    placed = network.with_poisoned(rate.poisoned)
    assert theory.contamination(placed).delta_max == pytest.approx(rate.value)
    for kind in ("uniform", "mixing"):
        worst = theory.worst_connectivity(network, count, kind, effort=300_000)
        placed = network.with_poisoned(worst.poisoned)
        assert theory.connectivity(placed, kind).lam == pytest.approx(worst.value)
        assert worst.value <= worst.bound + 1e-12
        rng = np.random.default_rng(0)
        for _ in range(10):
            some = network.with_poisoned(rng.choice(network.agents, count, replace=False))
            assert theory.connectivity(some, kind).lam <= worst.bound + 1e-9
        if kind == "uniform":
            assert worst.gap <= 2 / (network.agents - count) + 1e-9


def test_more_effort_is_never_worse():
    network = networks.erdos_renyi(agents=40, probability=0.15, seed=2)
    values = [
        theory.worst_connectivity(network, 5, effort=effort).value for effort in (0, 10**4, 10**6)
    ]
    assert values == sorted(values)


def test_who_is_poisoned_already_plays_no_part():
    network = networks.fan(agents=9)
    clean = network.with_poisoned([])
    assert theory.worst_contamination(network, 2) == theory.worst_contamination(clean, 2)
    assert theory.worst_connectivity(network, 2) == theory.worst_connectivity(clean, 2)


@pytest.mark.parametrize("worst", [theory.worst_contamination, theory.worst_connectivity])
@pytest.mark.parametrize("count", [-1, 10, 1.0])
def test_counts_that_cannot_be_are_refused(worst, count):
    with pytest.raises(BezoarError, match=r"poisoned: expected an integer from 0 to 9, found"):
        worst(networks.fan(agents=10), count)


@pytest.mark.parametrize("kind", ["uniform", "mixing"])
def test_a_mixing_matrix_that_there_is_not_is_refused(kind):
    with pytest.raises(BezoarError, match="mixing: 'metropolitan' is not known"):
        theory.worst_connectivity(networks.fan(), 1, kind, "metropolitan")
