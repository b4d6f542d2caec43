"""Cases built to draw a rule away from a unanimous majority."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from bezoar.networks import MIXINGS, Network

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Complete networks tried first: (regular, poisoned), the smallest and the tightest majorities.
_COMPLETE = ((2, 1), (3, 2), (4, 1), (5, 4), (6, 2), (9, 8))

#: How far the poisoned inputs lie from the majority.
_SCALES = (1.0, 1e-2, 1e2, 1e-6, 1e6)

#: How far the majority lies from the origin.
_OFFSETS = (1.0, 0.0, 100.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A network and what everyone sends.

    Attributes:
        attack: what the poisoned agents do.
        network: the network; regular inputs are a strict majority at every agent.
        majority: ``[D]`` what every regular agent sends, ``z``.
        messages: ``[W, D]`` what everyone sends.
        agents: the agents whose output must be ``z``.
    """

    attack: str
    network: Network
    majority: Floats
    messages: Floats
    agents: tuple[int, ...]


def adversarial_cases(seed: int) -> Iterator[Case]:
    """Endless cases, the most readable ones first; the same for the same seed."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    attacks = list(ATTACKS.items())
    networks = _networks(rng)
    number = 0
    while True:
        network = next(networks)
        agents = bound_to_follow(network)
        # One network a scale: every attack meets every scale within five networks.
        for _ in range(len(attacks)):
            name, attack = attacks[number % len(attacks)]
            scale = _SCALES[number // len(attacks) % len(_SCALES)]
            offset = _OFFSETS[number // 2 % len(_OFFSETS)]
            size = 1 + number % 5
            majority = offset * rng.standard_normal(size)
            messages = np.tile(majority, (network.agents, 1))
            messages[list(network.poisoned)] += scale * attack(rng, len(network.poisoned), size)
            yield Case(name, network, majority, messages, agents)
            number += 1


def bound_to_follow(network: Network) -> tuple[int, ...]:
    """The agents that a majority-dominant rule binds: regular inputs are a strict majority.

    By number, and also by weight in every mixing matrix: IOS follows the weights, and a poisoned
    agent's own weight alone can exceed 1/2. Agents that hear nobody poisoned are left out.
    """
    poisoned = network.poisoned_mask.astype(np.float64)
    by_weight = [network.mixing(kind) @ poisoned for kind in MIXINGS]
    share = np.max([network.poisoned_inputs / (network.degrees + 1), *by_weight], axis=0)
    bound = (network.poisoned_inputs > 0) & (share < 0.5 - 1e-9)
    return tuple(int(agent) for agent in np.flatnonzero(bound))


def _networks(rng: np.random.Generator) -> Iterator[Network]:
    for regular, poisoned in _COMPLETE:
        graph = nx.complete_graph(regular + poisoned)
        yield Network(graph, range(regular, regular + poisoned), name="complete")
    while True:
        agents = int(rng.integers(5, 14))
        graph = nx.gnp_random_graph(agents, float(rng.uniform(0.3, 0.9)), seed=rng)
        if not nx.is_connected(graph):
            continue
        network = Network(graph, _many_minorities(graph, rng.permutation(agents)), name="random")
        if bound_to_follow(network):
            yield network


def _many_minorities(graph: nx.Graph, order: NDArray[np.int64]) -> set[int]:
    """As many poisoned agents, in the given order, as leave everyone a regular majority."""
    poisoned: set[int] = set()
    for agent in order.tolist():
        more = poisoned | {agent}
        affected = [agent, *graph[agent]]
        if all(2 * len(more & {v, *graph[v]}) < len(graph[v]) + 1 for v in affected):
            poisoned = more
    return poisoned


def _direction(rng: np.random.Generator, size: int) -> Floats:
    direction = rng.standard_normal(size)
    unit: Floats = direction / np.linalg.norm(direction)
    return unit


def _together(rng: np.random.Generator, count: int, size: int) -> Floats:
    """All at one point: the paper's counterexample to clipping."""
    return np.tile(_direction(rng, size), (count, 1))


def _beside(rng: np.random.Generator, count: int, size: int) -> Floats:
    """A tight cluster, so that each of them has near company."""
    return _direction(rng, size) + 1e-3 * rng.standard_normal((count, size))


def _apart(rng: np.random.Generator, count: int, size: int) -> Floats:
    """Each in a direction of its own."""
    return np.stack([_direction(rng, size) for _ in range(count)])


def _opposite(rng: np.random.Generator, count: int, size: int) -> Floats:
    """Half on either side: the mean stays near the majority and nobody stands out by sign."""
    signs = np.where(np.arange(count) % 2, -1.0, 1.0)
    return signs[:, None] * _direction(rng, size)


def _staircase(rng: np.random.Generator, count: int, size: int) -> Floats:
    """Collinear and evenly spaced, starting next to the majority."""
    return np.arange(1, count + 1)[:, None] / count * _direction(rng, size)


def _masking(rng: np.random.Generator, count: int, size: int) -> Floats:
    """Collinear, each ten times nearer than the last: the far ones hide the near ones."""
    sizes = 0.1 ** (np.arange(count) % 5)
    return sizes[:, None] * _direction(rng, size)


def _axes(rng: np.random.Generator, count: int, size: int) -> Floats:
    """One coordinate each, against rules that look at one coordinate at a time."""
    signs: Floats = rng.choice([-1.0, 1.0], (count, 1))
    return np.eye(size)[np.arange(count) % size] * signs


def _lone(rng: np.random.Generator, count: int, size: int) -> Floats:
    """One deviates, the others say what the majority says."""
    return np.eye(count)[:, :1] * _direction(rng, size)


ATTACKS: dict[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "together": _together,
    "beside": _beside,
    "apart": _apart,
    "opposite": _opposite,
    "staircase": _staircase,
    "masking": _masking,
    "axes": _axes,
    "lone": _lone,
}
