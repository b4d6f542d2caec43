"""Doubly stochastic mixing matrices, in sparse form (section "IOS" of the paper)."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import sparse

from bezoar._options import choose


def metropolis(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Metropolis–Hastings weights.

    ``E_wv = 1 / (max(N_w, N_v) + 1)`` for neighbours, the rest on the diagonal; ``N_w`` is the
    number of neighbours without ``w`` itself.
    """
    links = adjacency.tocoo()
    degrees = np.diff(adjacency.indptr)
    weights = 1.0 / (np.maximum(degrees[links.row], degrees[links.col]) + 1)
    return _with_diagonal(links, weights)


def equal(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Equal weights: ``E_wv = 1 / (d_max + 1)`` for neighbours, the rest on the diagonal."""
    links = adjacency.tocoo()
    largest = int(np.diff(adjacency.indptr).max(initial=0))
    return _with_diagonal(links, np.full(links.nnz, 1.0 / (largest + 1)))


def _with_diagonal(links: sparse.coo_array, weights: np.ndarray) -> sparse.csr_array:
    agents = links.shape[0]
    given = np.bincount(links.row, weights=weights, minlength=agents)
    own = np.arange(agents)
    matrix = sparse.csr_array(
        (
            np.concatenate([weights, 1.0 - given]),
            (np.concatenate([links.row, own]), np.concatenate([links.col, own])),
        ),
        shape=links.shape,
    )
    matrix.sort_indices()
    return matrix


#: The mixing matrices by their names.
Mixing = Literal["metropolis", "equal"]

MIXINGS: dict[str, Callable[[sparse.csr_array], sparse.csr_array]] = {
    "metropolis": metropolis,
    "equal": equal,
}


def mixing_matrix(adjacency: sparse.csr_array, kind: str) -> sparse.csr_array:
    """The mixing matrix of the given kind over ``adjacency``."""
    return choose("mixing", kind, MIXINGS)(adjacency)
