"""How well a network is connected: λ and β (Theorem 1) of virtual mixing matrices, λ' (Theorem 2).

>>> from bezoar import networks, theory
>>> network = networks.two_castle()
>>> f"λ = {theory.connectivity(network).lam:.6f}, λ' = {theory.mixing_gap(network):.6f}"
"λ = 0.219178, λ' = 0.111111"
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from bezoar._arrays import Bools, Floats
from bezoar._options import choose
from bezoar.networks import Network, check_network

#: The kinds of virtual mixing matrix and what they are.
KINDS = {
    "uniform": "M_wv = 1/R̄_w over the regular inputs; row-stochastic",
    "mixing": "M_wv = E_wv, poisoned neighbours' weight on the diagonal; doubly stochastic",
}

#: Which virtual mixing matrix a rule approximates (Table I; RFA as in SPEC section 6).
MATRIX_OF = {
    "trimmed_mean": "uniform",
    "faba": "uniform",
    "centered_clipping": "uniform",
    "rfa": "uniform",
    "clipped_gossip": "mixing",
    "ios": "mixing",
}

#: Up to this many agents the spectrum of a mixing matrix is computed whole.
DENSE_AGENTS = 512

#: Restarts after which Lanczos gives way to factorising the matrix.
RESTARTS = 200


@dataclass(frozen=True)
class Connectivity:
    """How well the regular agents are connected, in the terms of Theorem 1.

    Attributes:
        kind: the virtual mixing matrix ``M``, ``"uniform"`` or ``"mixing"``.
        lam: ``λ = ‖M − 1pᵀ‖_∞``; the theorem needs ``λ < 1``.
        beta: ``β = ‖1pᵀ − (1/R)11ᵀ‖_∞``; zero where ``M`` is doubly stochastic.
        components: into how many pieces the regular network falls; more than one means λ ≥ 1.
    """

    kind: str
    lam: float
    beta: float
    components: int


def connectivity(
    network: Network, kind: str = "uniform", mixing: str = "metropolis"
) -> Connectivity:
    """``λ`` and ``β`` of a network's virtual mixing matrix (Theorem 1).

    Time and memory grow with the number of edges. The arguments are those of
    :func:`virtual_mixing`; :data:`MATRIX_OF` says which rule has which kind.
    """
    network = check_network(network)
    found = _placed(network, kind, mixing)
    return Connectivity(kind, float(found.lam[0]), float(found.beta[0]), network.regular_pieces)


def virtual_mixing(
    network: Network, kind: str = "uniform", mixing: str = "metropolis"
) -> sparse.csr_array:
    """The virtual mixing matrix ``M [R, R]`` of Definition 1, over ``network.regular``.

    Args:
        network: who hears whom, and who is poisoned.
        kind: ``"uniform"``: ``1/R̄_w`` for each regular input. ``"mixing"``: the entries of ``E``,
            the weight of poisoned neighbours moved onto the diagonal.
        mixing: for ``"mixing"``, the matrix ``E``: ``"metropolis"`` or ``"equal"``.
    """
    network = check_network(network)
    regular = np.asarray(network.regular)
    return _placed(network, kind, mixing).matrix[regular][:, regular]


def perron_vector(network: Network, kind: str = "uniform", mixing: str = "metropolis") -> Floats:
    """The Perron vector ``p [R]`` of the virtual mixing matrix: ``pᵀM = pᵀ``, ``Σp = 1``.

    Where the regular network is disconnected it is the limit of ``(1/R)1ᵀM^k``. It has a closed
    form, see docs/theory.md. The arguments are those of :func:`virtual_mixing`.
    """
    network = check_network(network)
    return _placed(network, kind, mixing).perron[0, list(network.regular)]


def _placed(network: Network, kind: str, mixing: str) -> "Placements":
    return placements(network, ~network.poisoned_mask[None], kind, mixing)


class Placements(NamedTuple):
    """The virtual mixing matrices of several placements of the poisoned agents in one graph.

    Each is a block on the diagonal of ``matrix [placements·W, placements·W]``, empty at poisoned
    agents. Perron vectors are ``[placements, W]``, ``λ`` and ``β`` are ``[placements]``.
    """

    matrix: sparse.csr_array
    perron: Floats
    lam: Floats
    beta: Floats


def placements(
    network: Network, regular: Bools, kind: str, mixing: str = "metropolis"
) -> Placements:
    """The virtual mixing matrices of a graph, all computed at once.

    ``regular [placements, W]`` says who is regular in each placement, at least one agent. Who is
    poisoned in the network plays no part; see :func:`virtual_mixing` for the other arguments.
    """
    choose("kind", kind, KINDS)
    # E has the right support for both kinds: every edge once in either direction, and loops.
    entries = network.mixing(mixing).tocoo()
    block, entry = np.nonzero(regular[:, entries.row] & regular[:, entries.col])
    rows = block * network.agents + entries.row[entry]
    columns = block * network.agents + entries.col[entry]

    def sums(values: Floats) -> Floats:
        """``[placements, W]`` the sum of one value an entry, over each row."""
        found = np.bincount(rows, weights=values, minlength=regular.size)
        return found.astype(np.float64).reshape(regular.shape)

    count, inputs = regular.sum(axis=1, keepdims=True), sums(np.ones(len(rows)))
    weights = entries.data[entry]
    if kind == "uniform":
        weights = 1.0 / inputs.ravel()[rows]
    else:
        weights = weights + np.where(rows == columns, 1.0 - sums(weights).ravel()[rows], 0.0)
    matrix = sparse.csr_array((weights, (rows, columns)), shape=(regular.size, regular.size))
    perron = regular / count
    if kind == "uniform":
        component = sparse.csgraph.connected_components(matrix, directed=False)[1]
        members, volume = (np.bincount(component, v.ravel()) for v in (regular, inputs))
        share = (members / np.maximum(volume, 1))[component].reshape(regular.shape)
        perron = share * inputs / count
    at_inputs = perron.ravel()[columns]
    distances = np.abs(weights - at_inputs)
    # A row's sum is that over the agent's inputs plus the rest of p, which sums to one. An agent
    # that hears everyone has no rest, and is spared the rounding.
    far = np.where(inputs == count, sums(distances), sums(distances - at_inputs) + 1.0)
    lam = np.where(regular, far, 0.0).max(axis=1).clip(min=0.0)
    beta = (np.abs(perron - 1.0 / count) * regular).sum(axis=1)
    return Placements(matrix, perron, lam, beta)


def mixing_gap(network: Network, mixing: str = "metropolis") -> float:
    """``λ' = ‖E − (1/W)11ᵀ‖₂`` of the mixing matrix ``E``, before Theorem 2.

    ``E`` is ``"metropolis"`` or ``"equal"``; who is poisoned plays no part. In large networks it is
    found to about ``1e-9``; see docs/theory.md.
    """
    network = check_network(network)
    matrix = network.mixing(mixing)
    agents = network.agents
    if agents <= DENSE_AGENTS:
        return float(np.abs(np.linalg.eigvalsh(matrix.toarray() - 1.0 / agents)).max())
    start = np.random.default_rng(0).standard_normal(agents)
    without_mean = LinearOperator(
        (agents, agents), matvec=lambda x: matrix @ x - x.mean(), dtype=np.float64
    )
    if np.linalg.norm(without_mean @ start) <= 1e-12 * np.linalg.norm(start):
        return 0.0
    options = {"v0": start, "return_eigenvectors": False, "tol": 1e-9}
    try:
        [largest] = eigsh(without_mean, k=1, which="LM", ncv=24, maxiter=RESTARTS, **options)
        return float(abs(largest))
    except ArpackNoConvergence:
        # The eigenvalues of long rings and lines crowd at one. Such networks factorise easily.
        return _by_factorising(matrix.tocsc(), options)


def _by_factorising(matrix: sparse.csc_array, options: dict[str, Any]) -> float:
    """The larger modulus of the second largest and the smallest eigenvalue, by shift-invert."""
    options = options | {"v0": options["v0"] - options["v0"].mean() + 1.0}
    upper = float(eigsh(matrix, k=2, sigma=1.0 + 1e-8, **options).min())
    # No eigenvalue lies below 2 min E_ww − 1 (Gershgorin): mostly that settles the other end.
    if upper >= 1 - 2 * matrix.diagonal().min():
        return upper
    return max(upper, -float(eigsh(matrix, k=1, sigma=-1.0, **options)[0]))
