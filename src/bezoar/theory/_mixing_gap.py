"""λ', how fast the weighted mean brings a whole network together (Theorem 2)."""

from typing import Any

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from bezoar.networks import Network

#: Up to this many agents the spectrum is computed whole.
DENSE_AGENTS = 512

#: Restarts after which Lanczos gives way to factorising the matrix.
RESTARTS = 200


def mixing_gap(network: Network, mixing: str = "metropolis") -> float:
    """``λ' = ‖E − (1/W)11ᵀ‖₂`` of the mixing matrix, before Theorem 2.

    ``E`` is symmetric, so this is the largest absolute eigenvalue with the all-one vector taken
    out. Small networks are solved densely, large ones by Lanczos from a fixed start vector, to
    about ``1e-9`` and without any dense ``[W, W]`` array. Where Lanczos would take too long (long
    rings and lines, whose eigenvalues crowd at one) the ends of the spectrum are found by
    factorising ``E ± I``, which such sparse, stretched networks allow.

    Args:
        network: the network; who is poisoned plays no part.
        mixing: the matrix ``E``: ``"metropolis"`` or ``"equal"``.
    """
    matrix = network.mixing(mixing)
    agents = network.agents
    if agents <= DENSE_AGENTS:
        return float(np.abs(np.linalg.eigvalsh(matrix.toarray() - 1.0 / agents)).max())
    start = np.random.default_rng(0).standard_normal(agents)
    without_mean = LinearOperator(
        (agents, agents), matvec=lambda x: matrix @ x - x.mean(), dtype=np.float64
    )
    image = without_mean @ start
    if np.linalg.norm(image) <= 1e-12 * np.linalg.norm(start):
        return 0.0
    options = {"v0": start, "return_eigenvectors": False, "tol": 1e-9}
    try:
        [largest] = eigsh(without_mean, k=1, which="LM", ncv=24, maxiter=RESTARTS, **options)
        return float(abs(largest))
    except ArpackNoConvergence:
        return _by_factorising(matrix.tocsc(), options)


def _by_factorising(matrix: csc_array, options: dict[str, Any]) -> float:
    """The larger modulus of the second largest and the smallest eigenvalue, by shift-invert."""
    options = options | {"v0": options["v0"] - options["v0"].mean() + 1.0}
    upper = float(eigsh(matrix, k=2, sigma=1.0 + 1e-8, **options).min())
    # No eigenvalue lies below 2 min E_ww − 1 (Gershgorin): mostly that settles the other end.
    if upper >= 1 - 2 * matrix.diagonal().min():
        return upper
    return max(upper, -float(eigsh(matrix, k=1, sigma=-1.0, **options)[0]))
