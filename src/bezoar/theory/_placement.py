"""Nobody knows in advance who is poisoned: the worst places for a number of poisoned agents."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from bezoar._options import choose
from bezoar.networks import Network
from bezoar.theory._checks import whole
from bezoar.theory._virtual import KINDS, placements

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Values nearer than this are a tie, which the first placement found wins.
_TIE = 1e-12

#: Matrix entries evaluated at a time.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class WorstPlacement:
    """The worst placement found, and how much worse one could be at the most.

    Attributes:
        quantity: what is largest: ``"delta_max"``, ``"lambda uniform"`` or ``"lambda mixing"``.
        poisoned: the placement, ascending.
        value: the quantity there.
        bound: no placement of as many agents has more.
        exact: whether ``value`` is known to be the largest.
    """

    quantity: str
    poisoned: tuple[int, ...]
    value: float
    bound: float
    exact: bool

    @property
    def gap(self) -> float:
        """How far the worst placement may lie above the one found; 0 where it is exact."""
        return 0.0 if self.exact else max(0.0, self.bound - self.value)


def worst_contamination(network: Network, poisoned: int) -> WorstPlacement:
    """The placement of ``poisoned`` agents with the largest ``δ_max``, exactly, in any network.

    ``max_w min(P, N_w)/(N_w+1)``. Whatever the placement, a regular agent ``w`` has at most
    ``min(P, N_w)`` poisoned inputs of ``N_w+1``. The agent where the maximum is reached can have
    that many: poison as many of its neighbours, and if ``P > N_w`` the ``P − N_w`` others among
    the ``W − 1 − N_w`` agents it does not hear, which are enough since ``P ≤ W − 1``.

    Args:
        network: the network; who is poisoned in it plays no part.
        poisoned: the number of poisoned agents, fewer than all.
    """
    count = whole("poisoned", poisoned, 0, network.agents - 1)
    rates = np.minimum(count, network.degrees) / (network.degrees + 1)
    agent = int(rates.argmax())
    value = float(rates[agent])
    placement = _around(network, agent, network.neighbours(agent), count)
    return WorstPlacement("delta_max", placement, value, value, exact=True)


def worst_connectivity(
    network: Network,
    poisoned: int,
    kind: str = "uniform",
    mixing: str = "metropolis",
    effort: int = 10_000_000,
) -> WorstPlacement:
    """The placement of ``poisoned`` agents with the largest ``λ`` (Theorem 1).

    ``mixing``: exact in any network. ``p = 1/R``, so row ``w`` of ``|M − 1pᵀ|`` depends on who is
    poisoned among the neighbours ``N_w`` alone. Both vectors sum to one, so the row's sum is
    ``2(1 − o_w)`` with the overlap ``o_w = Σ_{v∈R̄_w} min(M_wv, 1/R)``. Poisoning ``v`` takes
    ``min(E_wv, 1/R)`` from the overlap and gives the diagonal's part at most as much, so as many
    neighbours as possible, ``t = min(P, N_w)``, are poisoned. For a set ``T`` of them the overlap
    falls by ``Σ_T min(E_wv, 1/R) − min(E_ww + Σ_T E_wv, 1/R)`` plus a constant, which is largest
    for the ``t`` heaviest neighbours: if one of them weighs ``1/R`` or more it is ``Σ_T min(E_wv,
    1/R) − 1/R ≥ 0``, the most any ``T`` can have on the right; otherwise ``max(−E_ww, Σ_T E_wv −
    1/R)``, again the most. The best over all ``w`` is the answer; who else is poisoned does not
    matter.

    ``uniform``: ``p`` depends on the whole network. All placements are tried if that fits
    ``effort``. Otherwise placements around promising agents are tried and improved by swaps
    (from a fixed seed) until ``effort`` is spent, and ``bound`` holds for all placements: with
    ``H = max_u min(N̄_u, R)`` a component ``C`` has ``Σ_{u∈C} R̄_u ≤ |C|H``, so ``p_v ≥ R̄_v/(RH)``,
    and ``R̄_v ≥ b_v = max(N̄_v − P, 2)`` for a regular neighbour ``v`` of ``w``. None of these
    bounds exceeds ``1/R̄_w``, so ``o_w ≥ (h + the h−1 smallest b_v)/(RH)`` for ``h = R̄_w``, least
    where ``h`` is least. An agent alone has ``p_w = 1/R``, hence ``2(1 − 1/R)``.

    Args:
        network: the network; who is poisoned in it plays no part.
        poisoned: the number of poisoned agents, fewer than all.
        kind: the virtual mixing matrix, ``"uniform"`` or ``"mixing"``.
        mixing: for ``"mixing"``, the matrix ``E``.
        effort: how many matrix entries (agents and links, over all placements tried) to look at;
            ten million take a few seconds.
    """
    count = whole("poisoned", poisoned, 0, network.agents - 1)
    whole("effort", effort, 0)
    choose("kind", kind, KINDS)
    if kind == "mixing":
        return _worst_mixing(network, count, mixing)
    entries = network.agents + network.adjacency.nnz
    if comb(network.agents, count) * entries <= effort:
        tried = combinations(range(network.agents), count)
        placement, value = _worst_of(network, tried)
        return WorstPlacement("lambda uniform", placement, value, value, exact=True)
    bounds = _row_bounds(network, count)
    placement, value = _search(network, count, bounds, max(2, effort // entries))
    bound = float(bounds.max())
    exact = value >= bound - _TIE
    return WorstPlacement("lambda uniform", placement, value, max(bound, value), exact)


def _around(network: Network, agent: int, neighbours: Iterable[int], count: int) -> tuple[int, ...]:
    """``count`` agents but ``agent``: its neighbours in the given order, then the lowest."""
    first = list(neighbours)[:count]
    taken = {agent, *first}
    rest = (other for other in range(network.agents) if other not in taken)
    return tuple(sorted([*first, *islice(rest, count - len(first))]))


def _worst_mixing(network: Network, count: int, mixing: str) -> WorstPlacement:
    matrix = network.mixing(mixing)
    share = 1.0 / (network.agents - count)
    best, worst = -1.0, (0, np.empty(0, dtype=np.int64))
    for agent in range(network.agents):
        start, stop = matrix.indptr[agent : agent + 2]
        columns, weights = matrix.indices[start:stop], matrix.data[start:stop]
        own, others = columns == agent, columns != agent
        order = np.argsort(-weights[others], kind="stable")
        neighbours, descending = columns[others][order], weights[others][order]
        diagonal = weights[own].sum() + descending[:count].sum()
        overlap = np.minimum(descending[count:], share).sum() + min(diagonal, share)
        if 2 * (1 - overlap) > best + _TIE:
            best, worst = 2 * (1 - overlap), (agent, neighbours)
    value = max(0.0, float(best))
    placement = _around(network, worst[0], (int(v) for v in worst[1]), count)
    return WorstPlacement("lambda mixing", placement, value, value, exact=True)


def _row_bounds(network: Network, count: int) -> Floats:
    """``[W]`` for each agent, were it regular, a bound on its row sum over all placements."""
    regular = network.agents - count
    inputs = network.degrees + 1
    widest = int(np.minimum(inputs, regular).max())
    least = np.maximum(inputs - count, 2)
    bounds = np.empty(network.agents)
    indptr, indices = network.adjacency.indptr, network.adjacency.indices
    for agent in range(network.agents):
        left = int(inputs[agent]) - min(count, int(network.degrees[agent]))
        if left == 1:
            bounds[agent] = 2 * (1 - 1 / regular)
            continue
        others = least[indices[indptr[agent] : indptr[agent + 1]]]
        smallest = np.partition(others, left - 2)[: left - 1].sum()
        bounds[agent] = 2 * (1 - (left + smallest) / (regular * widest))
    return bounds.clip(min=0.0)


def _search(
    network: Network, count: int, bounds: Floats, evaluations: int
) -> tuple[tuple[int, ...], float]:
    """A bad placement: around promising agents first, then by swaps."""
    first = np.argsort(-bounds, kind="stable")[: max(1, evaluations // 2)]
    degrees = network.degrees
    around = (
        _around(network, agent, sorted(network.neighbours(agent), key=lambda v: -degrees[v]), count)
        for agent in first.tolist()
    )
    placement, value = _worst_of(network, around)
    rng = np.random.default_rng(0)
    left = evaluations - len(first)
    width = max(1, min(32, left))
    while left > 0 and count > 0:
        swapped = [_swap(rng, placement, network.agents) for _ in range(min(width, left))]
        left -= len(swapped)
        candidate, found = _worst_of(network, swapped)
        if found > value + _TIE:
            placement, value = candidate, found
    return placement, value


def _swap(rng: np.random.Generator, placement: tuple[int, ...], agents: int) -> tuple[int, ...]:
    """One poisoned agent of a placement exchanged for a regular one."""
    chosen = set(placement)
    chosen.remove(int(rng.choice(placement)))
    while True:
        other = int(rng.integers(agents))
        if other not in placement:
            return tuple(sorted({*chosen, other}))


def _worst_of(network: Network, tried: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], float]:
    """The placement with the largest ``λ`` of the uniform matrix, of ties the first."""
    best: tuple[int, ...] = ()
    value = -1.0
    for some in _chunks(iter(tried), network):
        regular = np.ones((len(some), network.agents), dtype=np.bool_)
        rows = np.repeat(np.arange(len(some)), [len(placement) for placement in some])
        regular[rows, np.array(some, dtype=np.int64).ravel()] = False
        lams = placements(network, regular, "uniform").spread()[0]
        highest = int(np.argmax(lams >= lams.max() - _TIE))
        if lams[highest] > value + _TIE:
            best, value = some[highest], float(lams[highest])
    return best, value


def _chunks(tried: Iterator[tuple[int, ...]], network: Network) -> Iterator[list[tuple[int, ...]]]:
    size = max(1, _CHUNK // (network.agents + network.adjacency.nnz))
    while some := list(islice(tried, size)):
        yield some
