"""Constants of softmax regression on given data: smoothness L and infimum f* (Assumptions 1, 2)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import entr, log_softmax

from bezoar._errors import BezoarError
from bezoar.theory._checks import non_negative, whole

Floats = NDArray[np.float64]


def softmax_smoothness(features: Iterable[ArrayLike], decay: float = 0.0) -> float:
    """The constant ``L`` of Assumption 2 for softmax regression.

    An agent's cost is the mean cross-entropy over its samples plus ``(decay/2)‖Θ‖²``. Its Hessian
    is ``(1/n) Σ_i (diag(p_i) − p_i p_iᵀ) ⊗ x_i x_iᵀ + decay·I`` with the predicted probabilities
    ``p_i``; labels play no part. Since ``diag(p) − ppᵀ ⪯ ½I``, with equality in the direction
    ``(1, −1, 0, …)/√2`` at ``p = (½, ½, 0, …)``,

        L = max_w ½ λ_max((1/n_w) Σ_i x_i x_iᵀ) + decay.

    The eigenvalue is computed exactly, to rounding. The factor ½ is the best uniform one: it is
    reached at ``Θ = 0`` with two classes, and with more classes in the limit of models that are
    undecided between two of them, which exist when the features have a constant column (a bias).

    Args:
        features: for each agent its samples ``[n_w, F]``, the constant column included.
        decay: the weight decay.
    """
    non_negative("decay", decay)
    largest = [_largest_eigenvalue(_matrix("features", samples)) for samples in features]
    if not largest:
        raise BezoarError("features: expected the samples of at least one agent, found none")
    return 0.5 * max(largest) + decay


def _largest_eigenvalue(samples: Floats) -> float:
    """``λ_max((1/n) XᵀX)``, from the smaller of the two Gram matrices."""
    gram = samples.T @ samples if samples.shape[0] >= samples.shape[1] else samples @ samples.T
    return float(np.linalg.eigvalsh(gram)[-1]) / len(samples)


@dataclass(frozen=True, eq=False)
class SoftmaxInfimum:
    """The infimum ``f*`` of a softmax regression cost, from both sides.

    Attributes:
        value: the lowest cost found; ``f*`` is not above it.
        lower: ``f*`` is not below it, up to rounding.
        certificate: why: ``"dual"``, ``"strong convexity"`` or ``"trivial"`` (costs are not
            negative).
        model: ``[classes, F]`` where the lowest cost was found.
        gradient_norm: the norm of the gradient there.
        iterations: how many the solver took.
    """

    value: float
    lower: float
    certificate: str
    model: Floats
    gradient_norm: float
    iterations: int


def softmax_infimum(
    features: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    classes: int | None = None,
    decay: float = 0.0,
    iterations: int = 1000,
    tolerance: float = 1e-8,
) -> SoftmaxInfimum:
    """Bracket ``f*`` of Assumption 1 for softmax regression, by L-BFGS.

    The cost is ``Σ_i w_i (−log softmax(Θx_i)_{b_i}) + (decay/2)‖Θ‖²`` with weights that sum to
    one. For the regular agents' cost ``f = (1/R) Σ_w f_w`` stack their samples and give each
    sample of agent ``w`` the weight ``1/(R n_w)``.

    Without decay the infimum need not be attained (separable data push Θ to infinity), and a small
    gradient alone certifies nothing. The lower bound is then the dual: every ``q_i`` in the simplex
    with ``Σ_i w_i (q_i − e_{b_i}) x_iᵀ = 0`` gives ``f* ≥ Σ_i w_i H(q_i)``, ``H`` the entropy. The
    model's own predictions are corrected by least squares to satisfy the equation; where that
    makes a probability negative, nothing better than the trivial bound 0 is claimed. With decay the
    cost is strongly convex and ``f* ≥ value − ‖gradient‖²/(2·decay)``.

    Args:
        features: ``[n, F]``, the constant column included.
        labels: ``[n]`` integers from 0.
        weights: ``[n]`` positive, scaled to sum to one; by default all equal.
        classes: the number of classes; by default the largest label plus one.
        decay: the weight decay.
        iterations: the most L-BFGS iterations.
        tolerance: stop when no entry of the gradient is larger.
    """
    x = _matrix("features", features)
    b, count = _labels(labels, len(x), classes)
    w = _weights(weights, len(x))
    non_negative("decay", decay)
    whole("iterations", iterations, 1)
    rows = np.arange(len(x))

    def cost(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(count, -1)
        logs = log_softmax(x @ theta.T, axis=1)
        value = -(w @ logs[rows, b]) + 0.5 * decay * (flat @ flat)
        wrong = np.exp(logs)
        wrong[rows, b] -= 1
        gradient = (wrong * w[:, None]).T @ x + decay * theta
        return float(value), gradient.ravel()

    options = {
        "maxiter": iterations, "maxfun": 4 * iterations, "gtol": tolerance, "ftol": 0.0,
        "maxcor": 20,
    }  # fmt: skip
    found = minimize(
        cost, np.zeros(count * x.shape[1]), jac=True, method="L-BFGS-B", options=options
    )
    value, gradient = cost(found.x)
    norm = float(np.linalg.norm(gradient))
    model = found.x.reshape(count, -1)
    lower, certificate = 0.0, "trivial"
    if decay > 0:
        candidate, reason = value - norm**2 / (2 * decay), "strong convexity"
    else:
        candidate, reason = _dual(x, w, model, gradient.reshape(count, -1)), "dual"
    if candidate > 0:
        lower, certificate = min(candidate, value), reason
    return SoftmaxInfimum(value, lower, certificate, model, norm, int(found.nit))


def _dual(x: Floats, w: Floats, model: Floats, gradient: Floats) -> float:
    """The dual value at the corrected predictions, or 0 where they cannot be corrected."""
    covariance = (x * w[:, None]).T @ x
    correction = np.linalg.lstsq(covariance, gradient.T, rcond=None)[0]
    predicted = np.exp(log_softmax(x @ model.T, axis=1)) - x @ correction
    if predicted.min() < 0:
        return 0.0
    return float(w @ entr(predicted).sum(axis=1))


def _matrix(field: str, found: ArrayLike) -> Floats:
    matrix = np.asarray(found, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all():
        raise BezoarError(
            f"{field}: expected finite samples [n, F], at least one, found the shape {matrix.shape}"
        )
    return matrix


def _labels(found: ArrayLike, samples: int, classes: int | None) -> tuple[NDArray[np.intp], int]:
    labels = np.asarray(found)
    if labels.shape != (samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise BezoarError(
            f"labels: expected {samples} integers, found {labels.dtype} of shape {labels.shape}"
        )
    count = int(labels.max()) + 1 if classes is None else whole("classes", classes, 1)
    if labels.min() < 0 or labels.max() >= count:
        raise BezoarError(
            f"labels: expected 0 … {count - 1}, found {labels.min()} … {labels.max()}"
        )
    return labels.astype(np.intp), count


def _weights(found: ArrayLike | None, samples: int) -> Floats:
    weights: Floats = np.ones(samples) if found is None else np.asarray(found, dtype=np.float64)
    if weights.shape != (samples,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise BezoarError(f"weights: expected {samples} positive numbers, found {weights.shape}")
    scaled: Floats = weights / weights.sum()
    return scaled
