"""Doubly stochastic mixing matrices, in sparse form (section "IOS" of the paper)."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import sparse

from bezoar._arrays import Floats


def metropolis(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Metropolis–Hastings weights.

    ``E_wv = 1 / (max(N_w, N_v) + 1)`` for neighbours, the rest on the diagonal; ``N_w`` is the
    number of neighbours without ``w`` itself.
    """
    degrees = np.diff(adjacency.indptr)
    larger = np.maximum(np.repeat(degrees, degrees), degrees[adjacency.indices])
    return with_diagonal(adjacency, 1.0 / (larger + 1))


def equal(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Equal weights: ``E_wv = 1 / (d_max + 1)`` for neighbours, the rest on the diagonal."""
    largest = int(np.diff(adjacency.indptr).max())
    return with_diagonal(adjacency, np.full(adjacency.nnz, 1.0 / (largest + 1)))


def with_diagonal(adjacency: sparse.csr_array, weights: Floats) -> sparse.csr_array:
    """The given weights on the links; the diagonal makes every row sum to one."""
    links = sparse.csr_array((weights, adjacency.indices, adjacency.indptr), adjacency.shape)
    given = np.bincount(links.nonzero()[0], weights, minlength=adjacency.shape[0])
    return links + sparse.diags_array(1.0 - given, format="csr")


#: The mixing matrices by their names.
Mixing = Literal["metropolis", "equal"]

MIXINGS: dict[str, Callable[[sparse.csr_array], sparse.csr_array]] = {
    "metropolis": metropolis,
    "equal": equal,
}
