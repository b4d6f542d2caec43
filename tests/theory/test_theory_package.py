import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from bezoar import BezoarError, Network, networks, theory


def test_importing_it_does_not_import_torch():
    code = "import sys, bezoar.theory; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_exist_and_say_what_they_are():
    for name in theory.__all__:
        assert getattr(theory, name) is not None
        if callable(getattr(theory, name)):
            assert getattr(theory, name).__doc__


@pytest.mark.parametrize(
    "ask",
    [
        theory.contamination,
        theory.connectivity,
        theory.virtual_mixing,
        theory.perron_vector,
        theory.mixing_gap,
        theory.overview,
        lambda found: theory.worst_contamination(found, 1),
        lambda found: theory.worst_connectivity(found, 1),
        lambda found: theory.measured_contraction(
            np.ones((3, 1)), np.ones((3, 1)), found, "mixing"
        ),
        lambda found: networks.place(found, 1),
    ],
)
def test_what_is_no_network_is_refused(ask):
    for found in ("fan", None, 3):
        message = rf"network: expected a Network or a networkx graph, found {found!r}"
        with pytest.raises(BezoarError, match=message):
            ask(found)
    assert ask(nx.complete_graph(3)) is not None


def test_many_agents():
    agents = 20_000
    rng = np.random.default_rng(0)
    rings = [rng.permutation(agents) for _ in range(4)]
    graph = nx.empty_graph(agents)
    graph.add_edges_from(
        np.concatenate([np.stack([ring, np.roll(ring, 1)], axis=1) for ring in rings]).tolist()
    )
    network = Network(graph, range(agents // 20))
    assert theory.contamination(network).delta == pytest.approx(0.05)
    # The second eigenvalue of a random 8-regular graph is near 2√7; the walk is lazy by 1/9.
    assert theory.mixing_gap(network) == pytest.approx((1 + 2 * np.sqrt(7)) / 9, abs=2e-3)
    for kind in ("uniform", "mixing"):
        assert 1 < theory.connectivity(network, kind).lam < 2
    assert theory.worst_contamination(network, 8).value == pytest.approx(8 / 9)


COMMON = {"smoothness": 1.0, "heterogeneity": 1.0, "initial_gap": 1.0, "iterations": 1}
ROBUST = COMMON | {"lam": 0.2, "beta": 0.0, "rho": 0.05}
MEAN = COMMON | {"mixing_gap": 0.2, "agents": 10, "regular": 9, "disturbance": 1.0}
CLEAN = theory.contamination(networks.ring(agents=6, poisoned=0))
SAMPLES = [[1.0], [1.0]]


@pytest.mark.parametrize("value", [1e200, np.inf])
@pytest.mark.parametrize(
    ("function", "numbers", "fields"),
    [
        (theory.robust_bound, ROBUST, "lam beta smoothness heterogeneity initial_gap"),
        (theory.weighted_mean_bound, MEAN, "mixing_gap smoothness heterogeneity disturbance"),
        (
            theory.lower_bound_instances,
            {"regular": 4, "poisoned": 4},
            "heterogeneity disturbance smoothness",
        ),
        (theory.learning_error_orders, {"rates": CLEAN}, "heterogeneity"),
        (theory.softmax_smoothness, {"features": [SAMPLES]}, "decay"),
        (theory.softmax_infimum, {"features": SAMPLES, "labels": [0, 1]}, "decay"),
    ],
)
def test_constants_with_which_nothing_can_be_computed_are_refused(function, numbers, fields, value):
    for field in fields.split():
        with pytest.raises(BezoarError, match=rf"{field}: expected a number from 0 to 1e\+60"):
            function(**(numbers | {field: value}))


@pytest.mark.parametrize(
    ("bound", "numbers"), [(theory.robust_bound, ROBUST), (theory.weighted_mean_bound, MEAN)]
)
def test_the_largest_constants_have_finite_bounds(bound, numbers):
    constants = ("smoothness", "heterogeneity", "disturbance", "initial_gap")
    found = bound(**(numbers | {name: 1e60 for name in constants if name in numbers}))
    assert np.isfinite([found.proved, found.total, found.consensus]).all()
