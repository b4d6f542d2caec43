"""Nobody knows in advance who is poisoned: the worst places for a number of poisoned agents.

>>> from bezoar import networks, theory
>>> worst = theory.worst_contamination(networks.star(agents=5), poisoned=1)
>>> worst.poisoned, worst.value, worst.exact
((0,), 0.5, True)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
from scipy import sparse

from bezoar._arrays import Floats, Ints
from bezoar._checks import whole
from bezoar._options import choose
from bezoar.networks import MIXINGS, Network, check_network, place, worst_agent
from bezoar.theory._connectivity import KINDS, placements

Placement = tuple[int, ...]

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
    poisoned: Placement
    value: float
    bound: float
    exact: bool

    @property
    def gap(self) -> float:
        """How far the worst placement may lie above the one found; 0 where it is exact."""
        return 0.0 if self.exact else max(0.0, self.bound - self.value)


def worst_contamination(network: Network, poisoned: int) -> WorstPlacement:
    """The placement with the largest ``δ_max``, exactly, in any network.

    It is ``max_w min(P, N_w)/(N_w+1)``; docs/theory.md says why.

    Args:
        network: the network; who is poisoned in it plays no part.
        poisoned: the number ``P`` of poisoned agents, fewer than all.
    """
    network = check_network(network)
    count = whole("poisoned", poisoned, 0, network.agents - 1)
    _, value = worst_agent(network, count)
    placement = place(network, count, "worst").poisoned
    return WorstPlacement("delta_max", placement, value, value, exact=True)


def worst_connectivity(
    network: Network,
    poisoned: int,
    kind: str = "uniform",
    mixing: str = "metropolis",
    effort: int = 10_000_000,
) -> WorstPlacement:
    """The placement with the largest ``λ`` (Theorem 1), by the arguments in docs/theory.md.

    It is exact for ``"mixing"``, and for ``"uniform"`` if ``effort`` allows to try all placements.
    Otherwise some are tried, and ``bound`` says how much worse another one could be.

    Args:
        network, poisoned: as for :func:`worst_contamination`.
        kind, mixing: as for :func:`virtual_mixing`.
        effort: how many matrix entries (agents and links, over all placements tried) to look at;
            ten million take a few seconds.
    """
    network = check_network(network)
    count = whole("poisoned", poisoned, 0, network.agents - 1)
    whole("effort", effort, 0)
    choose("kind", kind, KINDS)
    choose("mixing", mixing, MIXINGS)
    if kind == "mixing":
        return _worst_mixing(network, count, mixing)
    entries = network.agents + network.adjacency.nnz
    if comb(network.agents, count) * entries <= effort:
        placement, value = _worst_of(network, combinations(range(network.agents), count))
        return WorstPlacement("lambda uniform", placement, value, value, exact=True)
    bounds = _row_bounds(network, count)
    placement, value = _search(network, count, bounds, max(2, effort // entries))
    bound = float(bounds.max())
    exact = value >= bound - _TIE
    return WorstPlacement("lambda uniform", placement, value, max(bound, value), exact)


def _around(agent: int, weights: sparse.csr_array, count: int) -> Placement:
    """``count`` agents but ``agent``: its neighbours, the heaviest first, then the lowest."""
    order = np.argsort(-weights[[agent]].toarray()[0], kind="stable")
    return tuple(sorted(order[order != agent][:count].tolist()))


def _ranks(weights: sparse.csr_array) -> tuple[Ints, Ints]:
    """The row of each entry, and its place in the row when the heaviest comes first."""
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[np.lexsort((-weights.data, rows))] = np.arange(len(rows)) - weights.indptr[rows]
    return rows, ranks


def _worst_mixing(network: Network, count: int, mixing: str) -> WorstPlacement:
    links = network.mixing(mixing)
    own = links.diagonal()
    links.setdiag(0.0)
    share = 1.0 / (network.agents - count)
    rows, ranks = _ranks(links)
    poisoned = ranks < count
    moved = np.bincount(rows, weights=np.where(poisoned, links.data, 0.0))
    kept = np.bincount(rows, weights=np.where(poisoned, 0.0, np.minimum(links.data, share)))
    sums = 2 * (1 - kept - np.minimum(own + moved, share))
    agent = _first_of_largest(sums)
    value = max(0.0, float(sums[agent]))
    placement = _around(agent, links, count)
    return WorstPlacement("lambda mixing", placement, value, value, exact=True)


def _row_bounds(network: Network, count: int) -> Floats:
    """``[W]`` for each agent, were it regular, a bound on its row sum over all placements."""
    regular = network.agents - count
    inputs = network.degrees + 1
    widest = np.minimum(inputs, regular).max()
    left = inputs - np.minimum(count, network.degrees)
    least = network.adjacency.copy()
    least.data = -np.maximum(inputs[least.indices] - count, 2)
    rows, ranks = _ranks(least)
    chosen = np.where(ranks < left[rows] - 1, -least.data, 0)
    smallest = np.bincount(rows, weights=chosen, minlength=network.agents)
    overlaps = np.where(left == 1, widest, left + smallest) / (regular * widest)
    bounds: Floats = 2 * (1 - overlaps)
    return bounds.clip(min=0.0)


def _search(
    network: Network, count: int, bounds: Floats, evaluations: int
) -> tuple[Placement, float]:
    """A bad placement: around promising agents first, then by swaps from a fixed seed."""
    first = np.argsort(-bounds, kind="stable")[: max(1, evaluations // 2)]
    weights = network.adjacency.copy()
    weights.data = network.degrees[weights.indices]
    placement, value = _worst_of(network, (_around(agent, weights, count) for agent in first))
    rng = np.random.default_rng(0)
    left = evaluations - len(first) if count else 0
    while left > 0:
        swapped = [_swap(rng, placement, network.agents) for _ in range(min(32, left))]
        left -= len(swapped)
        candidate, found = _worst_of(network, swapped)
        if found > value + _TIE:
            placement, value = candidate, found
    return placement, value


def _swap(rng: np.random.Generator, placement: Placement, agents: int) -> Placement:
    """One poisoned agent of a placement exchanged for a regular one."""
    kept = set(placement) - {int(rng.choice(placement))}
    while True:
        other = int(rng.integers(agents))
        if other not in placement:
            return tuple(sorted({*kept, other}))


def _worst_of(network: Network, tried: Iterable[Placement]) -> tuple[Placement, float]:
    """The placement with the largest ``λ`` of the uniform matrix, of ties the first."""
    best, value, rest = Placement(), -1.0, iter(tried)
    size = max(1, _CHUNK // (network.agents + network.adjacency.nnz))
    while some := list(islice(rest, size)):
        regular = np.ones((len(some), network.agents), dtype=np.bool_)
        np.put_along_axis(regular, np.array(some, dtype=np.int64), False, axis=1)
        lams = placements(network, regular, "uniform").lam
        highest = _first_of_largest(lams)
        if lams[highest] > value + _TIE:
            best, value = some[highest], float(lams[highest])
    return best, value


def _first_of_largest(values: Floats) -> int:
    """The first place with the largest value, up to a tie."""
    return int(np.argmax(values >= values.max() - _TIE))
