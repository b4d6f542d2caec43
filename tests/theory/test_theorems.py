"""Theorems 1 and 2: the formulas, their conditions, and runs that must stay below them."""

from math import inf, sqrt

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from bezoar import BezoarError, aggregators, networks, theory

ROBUST = {
    "lam": 0.2,
    "beta": 0.1,
    "rho": 0.05,
    "smoothness": 2.0,
    "heterogeneity": 3.0,
    "initial_gap": 7.0,
    "iterations": 400,
}
MEAN = {
    "mixing_gap": 0.5,
    "agents": 10,
    "regular": 9,
    "smoothness": 2.0,
    "heterogeneity": 3.0,
    "disturbance": 4.0,
    "initial_gap": 7.0,
    "iterations": 400,
}
sizes = st.floats(0, 10)


def verdicts(guarantee):
    return {condition.name.split(" ")[0]: condition.holds for condition in guarantee.conditions}


def test_theorem_1_by_hand():
    found = theory.robust_bound(**ROBUST)
    assert found.omega == pytest.approx(0.6)
    assert [term.value for term in found.terms] == pytest.approx(
        [
            4 * 7 / 20,
            1024 * 1.05**2 * 4 * 0.16 * 9 / (400 * 0.36),
            256 * 0.0025 * 9 / 0.36,
            4 * 0.01 * 9,
        ]
    )
    assert found.total == pytest.approx(sum(term.value for term in found.terms))
    assert found.consensus == pytest.approx(64 * 0.16 * 9 / (400 * 0.36))
    assert found.holds
    d = 4 * 0.4 * 3 / (20 * 0.6)
    assert found.proved == pytest.approx(
        1.4 + 2 * ((1.2 * 2 + 0.1 * 20) * d + 0.3 * 3) ** 2 + 8 * d**2
    )
    assert found.guaranteed == found.proved


def test_theorem_2_by_hand():
    found = theory.weighted_mean_bound(**MEAN)
    spread = 0.01 * 16 + 16
    assert [term.value for term in found.terms] == pytest.approx(
        [4 * 7 / 20, 144 * 4 * 10 * 0.25 * spread / (9 * 400 * 0.25), 4 * 0.01 * 16]
    )
    assert found.consensus == pytest.approx(48 * 10 * (1 + 10 / 9) * spread / 400)
    assert found.holds
    assert found.guaranteed == pytest.approx(found.total)
    louder = theory.weighted_mean_bound(**(MEAN | {"heterogeneity": 5.0}))
    assert louder.consensus == pytest.approx(found.consensus / spread * (0.16 + 25))


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"lam": 1.0}, {"λ", "ρ", "K"}),
        ({"rho": 0.2}, {"ρ", "K"}),
        ({"rho": inf}, {"ρ", "K"}),
        ({"iterations": 28}, {"K"}),
        ({"iterations": 29}, set()),
        ({"smoothness": 0.0, "iterations": 1}, set()),
        ({"lam": 0.0, "rho": 0.0, "iterations": 3}, {"K"}),
        ({"lam": 0.0, "rho": 0.0, "iterations": 4}, set()),
    ],
)
def test_conditions_of_theorem_1(change, failing):
    # 16·0.4²·2²/0.6² = 28.4…
    found = theory.robust_bound(**(ROBUST | change))
    assert {name for name, holds in verdicts(found).items() if not holds} == failing
    assert found.holds == (not failing)
    assert (found.guaranteed == inf) == bool(failing)
    assert not np.isnan(found.total)
    assert all(("holds" in str(c)) == c.holds for c in found.conditions)


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"mixing_gap": 1.0}, {"λ'", "K"}),
        ({"iterations": 95}, {"K"}),
        ({"iterations": 96}, set()),
        ({"mixing_gap": 0.0, "iterations": 3}, {"K"}),
        ({"mixing_gap": 0.0, "iterations": 4}, set()),
    ],
)
def test_conditions_of_theorem_2(change, failing):
    found = theory.weighted_mean_bound(**(MEAN | change))
    assert {name for name, holds in verdicts(found).items() if not holds} == failing
    assert (found.guaranteed == inf) == bool(failing)
    assert not np.isnan(found.total)


@given(lam=st.floats(0, 0.99), share=st.floats(0, 0.99), beta=st.floats(0, 2), L=sizes, xi=sizes)
def test_the_printed_terms_of_theorem_1_cover_what_is_proved_while_omega_is_large(
    lam, share, beta, L, xi
):
    numbers = {"lam": lam, "rho": share * (1 - lam) / 4, "beta": beta, "smoothness": L}
    found = theory.robust_bound(**(ROBUST | numbers | {"heterogeneity": xi}))
    assume(found.omega >= 0.2)
    assert found.proved <= found.total * (1 + 1e-9) + 1e-9


def test_and_not_when_it_is_small():
    # The proof's (a+b+c+d)² ≤ 2(a²+b²+c²+d²) is false where b+d and c are alike and a is not zero.
    found = theory.robust_bound(
        lam=0.97,
        beta=1.0,
        rho=0.0025,
        smoothness=1.0,
        heterogeneity=1.0,
        initial_gap=0.0,
        iterations=15_400_000,
    )
    assert found.holds
    assert found.guaranteed > found.total


@given(iterations=st.integers(30, 10**6))
def test_bounds_fall_with_the_number_of_iterations(iterations):
    for bound, numbers in ((theory.robust_bound, ROBUST), (theory.weighted_mean_bound, MEAN)):
        some = bound(**(numbers | {"iterations": iterations}))
        more = bound(**(numbers | {"iterations": 4 * iterations}))
        assert more.consensus == pytest.approx(some.consensus / 4)
        for term, later in zip(some.terms, more.terms, strict=True):
            factor = {"start": 2, "drift": 4}.get(term.name, 1)
            assert later.value == pytest.approx(term.value / factor)


def test_nobody_poisoned_leaves_no_error():
    clean = theory.weighted_mean_bound(**(MEAN | {"regular": 10, "iterations": 10**16}))
    assert clean.total < 1e-4
    robust = theory.robust_bound(**(ROBUST | {"rho": 0.0, "beta": 0.0, "iterations": 10**16}))
    assert robust.total < 1e-4


@pytest.mark.parametrize("bound", [theory.robust_bound, theory.weighted_mean_bound])
@pytest.mark.parametrize("field", ["smoothness", "heterogeneity", "initial_gap", "iterations"])
@pytest.mark.parametrize("value", [-1, float("nan"), "2", True])
def test_numbers_that_cannot_be_are_refused_by_name(bound, field, value):
    numbers = ROBUST if bound is theory.robust_bound else MEAN
    with pytest.raises(BezoarError, match=f"{field}: expected"):
        bound(**(numbers | {field: value}))


def quadratics(network, rng, size=3, smoothness=1.0):
    """Costs ``½‖C^{1/2}(x − a_w)‖²`` with one curvature: ξ and A do not depend on x."""
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    curvature = basis * rng.uniform(0.2, smoothness, size) @ basis.T
    centres = rng.standard_normal((network.agents, size))
    return curvature, centres


def run(rule, network, curvature, centres, iterations, kind):
    """Algorithm 1 from zero with step 1/√K: mean squared gradient, consensus errors, ρ."""
    regular = list(network.regular)
    goal = centres[regular].mean(axis=0)
    models = np.zeros_like(centres)
    squares, consensus, rho = [], [], 0.0
    for _ in range(iterations):
        average = models[regular].mean(axis=0)
        squares.append(np.sum((curvature @ (average - goal)) ** 2))
        consensus.append(((models[regular] - average) ** 2).sum(axis=1).max())
        sent = models - (models - centres) @ curvature / sqrt(iterations)
        models = rule(torch.from_numpy(sent), network).numpy()
        rho = max(rho, theory.measured_contraction(sent, models, network, kind).rho)
    return np.mean(squares), max(consensus), rho


def constants(network, curvature, centres):
    regular, poisoned = list(network.regular), list(network.poisoned)
    goal = centres[regular].mean(axis=0)
    pulls = np.linalg.norm((centres - goal) @ curvature, axis=1)
    spread = centres[regular] - goal
    at_goal = 0.5 * np.einsum("wi,ij,wj->", spread, curvature, spread) / len(regular)
    at_start = 0.5 * np.einsum("wi,ij,wj->", centres[regular], curvature, centres[regular])
    return {
        "smoothness": float(np.linalg.eigvalsh(curvature)[-1]),
        "heterogeneity": float(pulls[regular].max()),
        "initial_gap": float(at_start / len(regular) - at_goal),
    }, float(pulls[poisoned].max())


@pytest.mark.parametrize("iterations", [100, 300])
@pytest.mark.parametrize("seed", range(2))
def test_theorem_2_holds_on_random_quadratics(iterations, seed):
    rng = np.random.default_rng(seed)
    for network in (networks.two_castle(), networks.torus(), networks.random_regular()):
        curvature, centres = quadratics(network, rng)
        numbers, disturbance = constants(network, curvature, centres)
        promised = theory.weighted_mean_bound(
            mixing_gap=theory.mixing_gap(network),
            agents=network.agents,
            regular=len(network.regular),
            disturbance=disturbance,
            iterations=iterations,
            **numbers,
        )
        rule = aggregators.create("weighted_mean")
        error, consensus, _ = run(rule, network, curvature, centres, iterations, "mixing")
        assert promised.holds
        assert 0 < error <= promised.guaranteed
        assert 0 < consensus <= promised.consensus


@pytest.mark.parametrize("rule", ["trimmed_mean", "faba", "ios"])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_1_holds_on_random_quadratics(rule, seed):
    # One poisoned among many in a complete network: ρ stays below (1−λ)/4.
    rng = np.random.default_rng(seed)
    network = networks.complete(agents=24, poisoned=1)
    kind = theory.MATRIX_OF[rule]
    curvature, centres = quadratics(network, rng)
    iterations = 100
    error, consensus, rho = run(
        aggregators.create(rule), network, curvature, centres, iterations, kind
    )
    connected = theory.connectivity(network, kind)
    promised = theory.robust_bound(
        lam=connected.lam,
        beta=connected.beta,
        rho=rho,
        iterations=iterations,
        **constants(network, curvature, centres)[0],
    )
    assert promised.holds, promised.conditions
    assert rho > 0
    assert 0 < error <= min(promised.guaranteed, promised.total)
    assert 0 < consensus <= promised.consensus
