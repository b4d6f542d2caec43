import numpy as np
import pytest
from scipy.special import softmax

from bezoar import BezoarError, theory


def hessian(x, theta, decay=0.0):
    """Of the mean cross-entropy, [classes·F, classes·F], term by term."""
    total = np.zeros((theta.size, theta.size))
    for sample, p in zip(x, softmax(x @ theta.T, axis=1), strict=True):
        total += np.kron(np.diag(p) - np.outer(p, p), np.outer(sample, sample))
    return total / len(x) + decay * np.eye(theta.size)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def samples(rng, count, size):
    return np.hstack([rng.uniform(-1, 1, (count, size - 1)), np.ones((count, 1))])


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_no_hessian_exceeds_the_smoothness(rng, classes, decay):
    x = samples(rng, 20, 3)
    L = theory.softmax_smoothness([x], decay)
    for scale in (0, 0.1, 1, 10):
        theta = scale * rng.standard_normal((classes, 3))
        assert np.linalg.eigvalsh(hessian(x, theta, decay))[-1] <= L * (1 + 1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_and_some_reach_it(rng, decay):
    x = samples(rng, 20, 3)
    L = theory.softmax_smoothness([x], decay)
    two = np.linalg.eigvalsh(hessian(x, np.zeros((2, 3)), decay))[-1]
    undecided = np.zeros((4, 3))
    undecided[2:, -1] = -50
    four = np.linalg.eigvalsh(hessian(x, undecided, decay))[-1]
    assert two == pytest.approx(L, rel=1e-12)
    assert four == pytest.approx(L, rel=1e-12)


def test_the_largest_agent_counts_whatever_the_shape(rng):
    wide, tall = rng.standard_normal((3, 8)), 3 * rng.standard_normal((30, 8))
    both = theory.softmax_smoothness([wide, tall])
    assert both == max(theory.softmax_smoothness([x]) for x in (wide, tall))
    expected = np.linalg.eigvalsh(wide.T @ wide / 3)[-1] / 2
    assert theory.softmax_smoothness([wide]) == pytest.approx(expected)


def cost(x, labels, theta, weights=None):
    p = softmax(x @ theta.T, axis=1)[np.arange(len(x)), labels]
    return -np.average(np.log(p), weights=weights)


def test_the_infimum_is_bracketed_by_the_dual(rng):
    x, labels = samples(rng, 200, 4), rng.integers(0, 3, 200)
    weights = rng.uniform(0.5, 2, 200)
    found = theory.softmax_infimum(x, labels, weights)
    assert found.certificate == "dual"
    assert found.lower <= found.value <= found.lower + 1e-9
    assert found.value == pytest.approx(cost(x, labels, found.model, weights))
    for scale in (0.01, 0.1, 1):
        other = found.model + scale * rng.standard_normal(found.model.shape)
        assert cost(x, labels, other, weights) >= found.lower


def test_the_certificate_survives_a_solver_that_stops_early(rng):
    x, labels = samples(rng, 200, 4), rng.integers(0, 3, 200)
    early = theory.softmax_infimum(x, labels, iterations=2)
    late = theory.softmax_infimum(x, labels)
    assert early.gradient_norm > late.gradient_norm
    assert early.lower <= late.lower + 1e-9 <= late.value + 2e-9 <= early.value + 3e-9
    assert early.lower > 0


def test_separable_data_have_no_minimiser(rng):
    shift = np.array([3, 0])
    x = np.vstack([samples(rng, 20, 2) + shift, samples(rng, 20, 2) - shift])
    found = theory.softmax_infimum(x, np.repeat([0, 1], 20))
    assert found.value < 1e-4
    assert 0 <= found.lower <= found.value


def test_decay_makes_the_cost_strongly_convex(rng):
    x, labels = samples(rng, 50, 3), rng.integers(0, 2, 50)
    found = theory.softmax_infimum(x, labels, decay=0.1)
    assert found.certificate == "strong convexity"
    assert found.lower == pytest.approx(found.value, abs=1e-10)
    rough = theory.softmax_infimum(x, labels, decay=0.1, iterations=1)
    assert rough.lower <= found.value <= rough.value
    assert found.value == pytest.approx(
        cost(x, labels, found.model) + 0.05 * (found.model**2).sum()
    )


def test_one_class_costs_nothing(rng):
    found = theory.softmax_infimum(samples(rng, 5, 2), np.zeros(5, dtype=int))
    assert found.value == 0


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("features", (np.ones(3), [0])),
        ("features", (np.full((2, 2), np.nan), [0, 1])),
        ("labels", (np.ones((2, 2)), [0, 1, 1])),
        ("labels", (np.ones((2, 2)), [0.0, 1.0])),
        ("labels", (np.ones((2, 2)), [0, -1])),
        ("weights", (np.ones((2, 2)), [0, 1], [1.0, -1.0])),
        ("weights", (np.ones((2, 2)), [0, 1], [1.0])),
    ],
)
def test_wrong_arrays_are_refused_by_name(field, arguments):
    with pytest.raises(BezoarError, match=f"{field}: expected"):
        theory.softmax_infimum(*arguments)


def test_no_agents_are_refused():
    with pytest.raises(BezoarError, match="at least one agent"):
        theory.softmax_smoothness([])
