"""Constants of softmax regression on given data: smoothness L and infimum f* (Assumptions 1, 2).

>>> from bezoar import theory
>>> theory.softmax_smoothness([[[1.0, 1.0]], [[3.0, 1.0]]])
5.0
>>> theory.softmax_infimum([[1.0]] * 4, [0, 0, 1, 1]).certificate
'dual'
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import entr, log_softmax

from bezoar._arrays import Floats
from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar.theory._theorems import finite

#: L-BFGS stops when no entry of the gradient is larger.
TOLERANCE = 1e-8


def softmax_smoothness(features: Iterable[ArrayLike], decay: float = 0.0) -> float:
    """The constant ``L = max_w ½ λ_max((1/n_w) Σ_i x_i x_iᵀ) + decay`` of Assumption 2.

    An agent's cost is the mean cross-entropy over its samples plus ``(decay/2)‖Θ‖²``. Labels play
    no part, and no smaller factor than ½ holds for all models; see docs/theory.md.

    Args:
        features: for each agent its samples ``[n_w, F]``, the constant column included.
        decay: the weight decay.
    """
    finite("decay", decay)
    largest = []
    for x in map(_samples, features):
        # XᵀX and XXᵀ have the same largest eigenvalue: take the smaller matrix.
        gram = x.T @ x if x.shape[0] >= x.shape[1] else x @ x.T
        largest.append(float(np.linalg.eigvalsh(gram)[-1]) / len(x))
    if not largest:
        raise BezoarError("features: expected the samples of at least one agent, found none")
    return 0.5 * max(largest) + decay


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
) -> SoftmaxInfimum:
    """Bracket ``f*`` of Assumption 1 for softmax regression, by L-BFGS.

    The cost is ``Σ_i w_i (−log softmax(Θx_i)_{b_i}) + (decay/2)‖Θ‖²`` with weights that sum to
    one. For the regular agents' cost ``f = (1/R) Σ_w f_w`` stack their samples and give each
    sample of agent ``w`` the weight ``1/(R n_w)``. The lower bounds are derived in docs/theory.md.

    Args:
        features: ``[n, F]``, the constant column included.
        labels: ``[n]`` integers from 0.
        weights: ``[n]`` positive, scaled to sum to one; by default all equal.
        classes: the number of classes; by default the largest label plus one.
        decay: the weight decay.
        iterations: the most L-BFGS iterations.
    """
    x = _samples(features)
    b, count = _labels(labels, len(x), classes)
    w: Floats = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (len(x),) or not (np.isfinite(w) & (w > 0)).all():
        wrong = f"the shape {w.shape}" if w.shape != (len(x),) else w.min()
        raise BezoarError(f"weights: expected {len(x)} positive numbers, found {wrong}")
    w = w / w.sum()
    finite("decay", decay)
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

    limits = {"maxiter": iterations, "maxfun": 4 * iterations, "gtol": TOLERANCE, "ftol": 0.0}
    zeros = np.zeros(count * x.shape[1])
    found = minimize(cost, zeros, jac=True, method="L-BFGS-B", options=limits | {"maxcor": 20})
    value, gradient = cost(found.x)
    norm = float(np.linalg.norm(gradient))
    model = found.x.reshape(count, -1)
    if decay > 0:
        lower, certificate = value - norm**2 / (2 * decay), "strong convexity"
    else:
        lower, certificate = _dual(x, w, model, gradient.reshape(count, -1)), "dual"
    if lower <= 0:
        lower, certificate = 0.0, "trivial"
    return SoftmaxInfimum(value, min(lower, value), certificate, model, norm, int(found.nit))


def _dual(x: Floats, w: Floats, model: Floats, gradient: Floats) -> float:
    """The dual value at the corrected predictions, or 0 where they cannot be corrected."""
    covariance = (x * w[:, None]).T @ x
    correction = np.linalg.lstsq(covariance, gradient.T, rcond=None)[0]
    predicted = np.exp(log_softmax(x @ model.T, axis=1)) - x @ correction
    if predicted.min() < 0:
        return 0.0
    return float(w @ entr(predicted).sum(axis=1))


def _samples(found: ArrayLike) -> Floats:
    samples = np.asarray(found, dtype=np.float64)
    if samples.ndim != 2 or 0 in samples.shape or not np.isfinite(samples).all():
        raise BezoarError(
            f"features: expected finite samples [n, F], at least one, found the shape "
            f"{samples.shape}"
        )
    return samples


def _labels(found: ArrayLike, samples: int, classes: int | None) -> tuple[NDArray[np.intp], int]:
    labels = np.asarray(found)
    if labels.shape != (samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise BezoarError(
            f"labels: expected {samples} integers, found {labels.dtype} of shape {labels.shape}"
        )
    low, high = int(labels.min()), int(labels.max())
    count = high + 1 if classes is None else whole("classes", classes, 1)
    if low < 0 or high >= count:
        raise BezoarError(f"labels: expected 0 … {count - 1}, found {low} … {high}")
    return labels.astype(np.intp), count
