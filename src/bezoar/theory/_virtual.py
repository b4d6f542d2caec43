"""Virtual mixing matrices of the regular network, their Perron vectors, λ and β (Theorem 1).

Everything here works on many placements of the poisoned agents in one graph at once, as one
block-diagonal sparse matrix: a network is the case of one placement, and a search for the worst
placement uses the same lines.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bezoar._options import choose
from bezoar.networks import Network

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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

    Time and memory grow with the number of edges; the largest absolute row sum is exact, since
    ``Σ_v |M_wv − p_v|`` over all regular ``v`` is the sum over the inputs of ``w`` plus the rest
    of ``p``, which sums to one.

    Args:
        network: the network.
        kind: ``"uniform"`` (TriMean, FABA, CC, RFA) or ``"mixing"`` (CG, IOS).
        mixing: for ``"mixing"``, the matrix ``E``: ``"metropolis"`` or ``"equal"``.
    """
    blocks = placements(network, ~network.poisoned_mask[None], kind, mixing)
    lam, beta = blocks.spread()
    return Connectivity(kind, float(lam[0]), float(beta[0]), int(blocks.components()[0]))


def virtual_mixing(
    network: Network, kind: str = "uniform", mixing: str = "metropolis"
) -> sparse.csr_array:
    """The virtual mixing matrix ``M [R, R]`` of Definition 1, over ``network.regular``.

    Args:
        network: the network.
        kind: ``"uniform"``: ``1/R̄_w`` for each regular input. ``"mixing"``: the entries of ``E``,
            the weight of poisoned neighbours moved onto the diagonal.
        mixing: for ``"mixing"``, the matrix ``E``: ``"metropolis"`` or ``"equal"``.
    """
    blocks = placements(network, ~network.poisoned_mask[None], kind, mixing)
    position = np.cumsum(blocks.regular) - 1
    size = len(network.regular)
    matrix = sparse.csr_array(
        (blocks.weights, (position[blocks.rows], position[blocks.columns])), shape=(size, size)
    )
    matrix.sort_indices()
    return matrix


def perron_vector(network: Network, kind: str = "uniform", mixing: str = "metropolis") -> Floats:
    """The Perron vector ``p [R]`` of the virtual mixing matrix: ``pᵀM = pᵀ``, ``Σp = 1``.

    In closed form. The mixing matrix is doubly stochastic, so ``p = 1/R``. The uniform one is the
    random walk, loops included, on the regular network: within a connected component ``p`` is
    proportional to ``R̄_w``. Where the regular network is disconnected ``p`` is not unique, and
    the limit of ``(1/R)1ᵀM^k`` is taken: the loops make each walk aperiodic and no mass leaves a
    component, so a component of ``n`` agents keeps its share ``n/R``.
    """
    blocks = placements(network, ~network.poisoned_mask[None], kind, mixing)
    return blocks.perron()[blocks.regular]


@dataclass(frozen=True, eq=False)
class Placements:
    """The virtual mixing matrices of several placements, as one block-diagonal matrix.

    Agent ``w`` of placement ``b`` has the index ``b·W + w``.

    Attributes:
        kind: the kind of matrix.
        agents: the number of agents ``W`` of each placement.
        regular: ``[placements·W]`` who is regular.
        rows: ``[entries]`` and ``columns`` ``[entries]`` where the matrices are not zero.
        weights: ``[entries]`` the entries.
        inputs: ``[placements·W]`` the number of regular inputs ``R̄_w``, 0 for the poisoned.
    """

    kind: str
    agents: int
    regular: Bools
    rows: Ints
    columns: Ints
    weights: Floats
    inputs: Ints

    def spread(self) -> tuple[Floats, Floats]:
        """``λ`` and ``β`` of each placement, both ``[placements]``."""
        total = len(self.regular)
        perron, regular = self.perron(), self._counts()
        at_columns = perron[self.columns]
        near = _sums(self.rows, np.abs(self.weights - at_columns) - at_columns, total)
        rows = near + 1.0
        # An agent that hears everyone has nothing beyond its inputs: spare it the rounding.
        everyone = self.inputs == np.repeat(regular, self.agents)
        rows[everyone] = _sums(self.rows, np.abs(self.weights - at_columns), total)[everyone]
        rows[~self.regular] = 0.0
        uneven = np.abs(perron - np.repeat(1.0 / regular, self.agents))
        uneven[~self.regular] = 0.0
        return (
            rows.reshape(-1, self.agents).max(axis=1).clip(min=0.0),
            uneven.reshape(-1, self.agents).sum(axis=1),
        )

    def perron(self) -> Floats:
        """``[placements·W]`` the Perron vectors, zero at poisoned agents."""
        regular = np.repeat(self._counts(), self.agents)
        if self.kind == "mixing":
            return self.regular / regular
        component = self._components()
        pieces = int(component.max()) + 1
        members = np.bincount(component, weights=self.regular, minlength=pieces)
        volume = np.bincount(component, weights=self.inputs, minlength=pieces)
        share = members / np.maximum(volume, 1)
        return share[component] * self.inputs / regular

    def components(self) -> Ints:
        """``[placements]`` into how many pieces the regular agents of each placement fall."""
        block, component = np.arange(len(self.regular)) // self.agents, self._components()
        pairs = np.unique(np.stack([block[self.regular], component[self.regular]]), axis=1)
        return np.bincount(pairs[0], minlength=len(self.regular) // self.agents)

    def _counts(self) -> Ints:
        counts: Ints = self.regular.reshape(-1, self.agents).sum(axis=1)
        return counts

    def _components(self) -> Ints:
        total = len(self.regular)
        links = sparse.coo_array(
            (np.ones(len(self.rows), dtype=np.int8), (self.rows, self.columns)),
            shape=(total, total),
        )
        labels: Ints = sparse.csgraph.connected_components(links, directed=False)[1]
        return labels


def placements(
    network: Network, regular: Bools, kind: str, mixing: str = "metropolis"
) -> Placements:
    """The virtual mixing matrices of a graph for several placements of its poisoned agents.

    Args:
        network: the graph; who is poisoned in it plays no part.
        regular: ``[placements, W]`` who is regular in each placement, at least one agent.
        kind: ``"uniform"`` or ``"mixing"``.
        mixing: for ``"mixing"``, the matrix ``E``.
    """
    choose("kind", kind, KINDS)
    # E has the right support for both kinds: every edge once in either direction, and loops.
    entries = network.mixing(mixing).tocoo()
    kept = regular[:, entries.row] & regular[:, entries.col]
    block, entry = np.nonzero(kept)
    rows = block * network.agents + entries.row[entry]
    columns = block * network.agents + entries.col[entry]
    total = regular.size
    inputs = np.bincount(rows, minlength=total)
    if kind == "uniform":
        weights = 1.0 / inputs[rows]
    else:
        weights = entries.data[entry]
        moved = 1.0 - _sums(rows, weights, total)
        weights = weights + np.where(rows == columns, moved[rows], 0.0)
    return Placements(kind, network.agents, regular.ravel(), rows, columns, weights, inputs)


def _sums(places: Ints, values: Floats, size: int) -> Floats:
    sums: Floats = np.bincount(places, weights=values, minlength=size).astype(np.float64)
    return sums
