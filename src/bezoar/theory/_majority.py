"""Majority dominance (Definition 2): a search for counterexamples against any rule.

>>> from bezoar import aggregators, theory
>>> print(theory.check_majority_dominance(aggregators.create("faba"), cases=40))
FABA: survived 40 adversarial cases
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np

from bezoar._arrays import Floats, Ints
from bezoar._checks import positive, whole
from bezoar._errors import BezoarError
from bezoar.networks import MIXINGS, Network

#: Complete networks tried first: (regular, poisoned), the smallest and the tightest majorities.
_COMPLETE = ((2, 1), (3, 2), (4, 1), (5, 4), (6, 2), (9, 8))

#: How far the poisoned inputs lie from the majority.
_SCALES = (1.0, 1e-2, 1e2, 1e-6, 1e6)

#: How far the majority lies from the origin.
_OFFSETS = (1.0, 0.0, 100.0)


@dataclass(frozen=True, eq=False)
class Counterexample:
    """An agent whose regular inputs are a unanimous majority, and which did not follow them.

    Attributes:
        attack: how the poisoned inputs were chosen.
        network: the network.
        agent: the agent.
        sources: ``[m]`` the agents behind its inputs, itself first.
        inputs: ``[m, D]`` its inputs.
        expected: ``[D]`` what the majority says.
        found: ``[D]`` what the rule returned.
        distance: between the two.
    """

    attack: str
    network: Network
    agent: int
    sources: tuple[int, ...]
    inputs: Floats
    expected: Floats
    found: Floats
    distance: float

    def __str__(self) -> str:
        poisoned = self.network.poisoned
        heard = (
            f"  {source:>4} {'poisoned' if source in poisoned else 'regular ':8} {sent}"
            for source, sent in zip(self.sources, self.inputs, strict=True)
        )
        return "\n".join(
            [
                f"{self.network!r}, poisoned inputs {self.attack}",
                f"agent {self.agent} hears:",
                *heard,
                f"expected {self.expected}",
                f"found    {self.found}, at distance {self.distance:.6g}",
            ]
        )


@dataclass(frozen=True, eq=False)
class MajorityDominance:
    """The outcome of a search for counterexamples.

    Attributes:
        rule: the rule.
        survived: the number of cases the rule survived.
        refused: the number of cases on whose networks the rule refused to work.
        counterexample: the first one found, if any.
    """

    rule: str
    survived: int
    refused: int
    counterexample: Counterexample | None

    @property
    def holds(self) -> bool:
        """Whether no counterexample was found. This is evidence, not a proof."""
        return self.counterexample is None

    def __str__(self) -> str:
        refused = f", refused {self.refused}" if self.refused else ""
        cases = f"{self.survived} adversarial cases{refused}"
        if self.holds:
            return f"{self.rule}: survived {cases}"
        return f"{self.rule}: not majority-dominant, fell after {cases}\n{self.counterexample}"


def check_majority_dominance(
    rule: Callable[[Any, Network], Any], cases: int = 200, seed: int = 0, tolerance: float = 1e-5
) -> MajorityDominance:
    """Try to show that a rule is not majority-dominant (Definition 2).

    Every agent must return what all its regular inputs, a strict majority, say: ``z``.
    docs/theory.md says how the cases are built and which agents are asked.

    Args:
        rule: an aggregator, or anything called as ``rule(messages [W, D], network)`` with a
            float64 tensor that returns a tensor of the same shape.
        cases: how many cases to try, an exchange on a whole network each.
        seed: which cases.
        tolerance: an output may miss ``z`` by this share of the distance of the farthest input.
            Smoothed rules such as RFA need that.

    Raises:
        BezoarError: if the rule refuses every case, or returns another shape.
    """
    import torch

    if not callable(rule):
        raise BezoarError(
            f"rule: expected an aggregator, or a function of messages and a network, found {rule!r}"
        )
    whole("cases", cases, 1)
    whole("seed", seed, 0)
    positive("tolerance", tolerance)
    name = getattr(rule, "label", "") or getattr(rule, "__name__", "") or type(rule).__name__
    survived = refused = 0
    for case in islice(adversarial_cases(seed), cases):
        try:
            outputs = rule(torch.from_numpy(case.messages.copy()), case.network)
        except BezoarError as error:
            refused, refusal = refused + 1, error
            continue
        found = np.asarray(outputs.detach() if hasattr(outputs, "detach") else outputs)
        if found.shape != case.messages.shape:
            raise BezoarError(
                f"rule: expected outputs of the shape {case.messages.shape}, found {found.shape}"
            )
        counterexample = case.counterexample(found.astype(np.float64), tolerance)
        if counterexample is not None:
            return MajorityDominance(name, survived, refused, counterexample)
        survived += 1
    if refused == cases:
        raise BezoarError(f"rule: it refuses every case; the last reason is: {refusal}")
    return MajorityDominance(name, survived, refused, None)


@dataclass(frozen=True, eq=False)
class Case:
    """A network and what everyone sends, built to draw a rule away from a unanimous majority.

    Every regular agent sends the ``majority [D]``, which must be the output of the ``agents``;
    ``messages [W, D]`` are what everyone sends.
    """

    attack: str
    network: Network
    majority: Floats
    messages: Floats
    agents: tuple[int, ...]

    def counterexample(self, outputs: Floats, tolerance: float) -> Counterexample | None:
        """The first agent that had to follow the majority and did not, if there is one."""
        rounding = 64 * float(np.finfo(np.float64).eps) * np.linalg.norm(self.majority)
        for agent in self.agents:
            sources = (agent, *self.network.neighbours(agent))
            inputs, found = self.messages[list(sources)], outputs[agent]
            farthest = np.linalg.norm(inputs - self.majority, axis=1).max()
            distance = float(np.linalg.norm(found - self.majority))
            if not distance <= tolerance * farthest + rounding:  # also where it is not a number
                told = (sources, inputs, self.majority, found, distance)
                return Counterexample(self.attack, self.network, agent, *told)
        return None


def adversarial_cases(seed: int) -> Iterator[Case]:
    """Endless cases, the most readable ones first; the same for the same seed."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    for place, network in enumerate(_networks(rng)):
        agents, poisoned = bound_to_follow(network), list(network.poisoned)
        # One scale a network: every attack meets every scale within five networks.
        scale = _SCALES[place % len(_SCALES)]
        for number, (name, attack) in enumerate(ATTACKS.items(), start=place * len(ATTACKS)):
            size = 1 + number % 5
            majority = _OFFSETS[number // 2 % len(_OFFSETS)] * rng.standard_normal(size)
            messages = np.tile(majority, (network.agents, 1))
            numbers = np.arange(len(poisoned))[:, None]
            messages[poisoned] += scale * attack(rng, _directions(rng, 1, size)[0], numbers)
            yield Case(name, network, majority, messages, agents)


def bound_to_follow(network: Network) -> tuple[int, ...]:
    """The agents that a majority-dominant rule binds: regular inputs are a strict majority.

    They must be one by number, and by weight in every mixing matrix; docs/theory.md says why.
    Agents that hear nobody poisoned are left out.
    """
    poisoned = network.poisoned_mask.astype(np.float64)
    by_weight = [network.mixing(kind) @ poisoned for kind in MIXINGS]
    share = np.max([network.poisoned_inputs / (network.degrees + 1), *by_weight], axis=0)
    bound = (network.poisoned_inputs > 0) & (share < 0.5 - 1e-9)
    return tuple(np.flatnonzero(bound).tolist())


def _networks(rng: np.random.Generator) -> Iterator[Network]:
    """Networks with majorities as small as can be: complete ones, then random ones for ever."""
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


def _many_minorities(graph: nx.Graph, order: Ints) -> set[int]:
    """As many poisoned agents, in the given order, as leave everyone a regular majority."""
    poisoned: set[int] = set()
    for agent in order.tolist():
        more = poisoned | {agent}
        affected = [agent, *graph[agent]]
        if all(2 * len(more & {v, *graph[v]}) < len(graph[v]) + 1 for v in affected):
            poisoned = more
    return poisoned


def _directions(rng: np.random.Generator, count: int, size: int) -> Floats:
    """``[count, size]`` random vectors of length one."""
    drawn = rng.standard_normal((count, size))
    units: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return units


#: How far from the majority each poisoned agent goes, ``[count, size]``, by the attack's name. An
#: attack is given a random direction ``u [size]`` and the numbers ``n [count, 1]``, 0, 1, 2, ….
ATTACKS: dict[str, Callable[[np.random.Generator, Floats, Ints], Floats]] = {
    # All at one point: the paper's counterexample to clipping.
    "together": lambda rng, u, n: u + 0 * n,
    # A tight cluster, so that each of them has near company.
    "beside": lambda rng, u, n: u + 1e-3 * rng.standard_normal((len(n), len(u))),
    # Each in a direction of its own.
    "apart": lambda rng, u, n: _directions(rng, len(n), len(u)),
    # Half on either side: the mean stays near the majority and nobody stands out by sign.
    "opposite": lambda rng, u, n: (-1.0) ** n * u,
    # Collinear and evenly spaced, starting next to the majority.
    "staircase": lambda rng, u, n: (n + 1) / len(n) * u,
    # Collinear, each ten times nearer than the last: the far ones hide the near ones.
    "masking": lambda rng, u, n: 0.1 ** (n % 5) * u,
    # One coordinate each, against rules that look at one coordinate at a time.
    "axes": lambda rng, u, n: np.eye(len(u))[n[:, 0] % len(u)] * rng.choice([-1, 1], (len(n), 1)),
    # One deviates, the others say what the majority says.
    "lone": lambda rng, u, n: (n == 0) * u,
}
