"""Majority dominance (Definition 2): a search for counterexamples against any rule."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError
from bezoar.networks import Network
from bezoar.theory._adversaries import Case, adversarial_cases
from bezoar.theory._checks import positive, whole

Floats = NDArray[np.float64]


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
        poisoned = set(self.network.poisoned)
        lines = [
            f"{self.network!r}, poisoned inputs {self.attack}",
            f"agent {self.agent} hears:",
            *(
                f"  {source:>4} {'poisoned' if source in poisoned else 'regular ':8} {values}"
                for source, values in zip(self.sources, self.inputs, strict=True)
            ),
            f"expected {self.expected}",
            f"found    {self.found}, at distance {self.distance:.6g}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class MajorityDominance:
    """What a search for counterexamples came to.

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
        if self.counterexample is None:
            return f"{self.rule}: survived {self.survived} adversarial cases{refused}"
        return (
            f"{self.rule}: not majority-dominant, fell after {self.survived} adversarial cases"
            f"{refused}\n{self.counterexample}"
        )


def check_majority_dominance(
    rule: Callable[[Any, Network], Any],
    cases: int = 200,
    seed: int = 0,
    tolerance: float = 1e-5,
) -> MajorityDominance:
    """Try to show that a rule is not majority-dominant (Definition 2).

    In every case all regular agents send the same ``z``, and regular inputs are a strict majority
    at every agent, poisoned ones included; the poisoned agents send what is built to defeat
    distances, means and coordinates: together, in a tight cluster, in all directions, on opposite
    sides, collinear, one hiding the next, near and far. Then every agent must return ``z``. The
    majorities are as small as can be: complete networks with one more regular agent than
    poisoned, and random ones in which nobody else could be poisoned. The first cases are the
    smallest, the very first is the paper's counterexample to CC and CG.

    Agents are asked only where the regular inputs' weights, in the Metropolis–Hastings and in the
    equal-weight matrix, are a majority too: IOS is majority-dominant under that condition, and a
    poisoned agent with few neighbours can have more than half of the weight itself.

    Args:
        rule: an aggregator, or anything called as ``rule(messages [W, D], network)`` with a
            float64 tensor that returns a tensor of the same shape.
        cases: how many cases to try, an exchange on a whole network each.
        seed: which cases.
        tolerance: an output may miss ``z`` by this share of the distance of the farthest input,
            which is what smoothed rules such as RFA need.
    """
    import torch

    whole("cases", cases, 1)
    whole("seed", seed, 0)
    positive("tolerance", tolerance)
    survived = refused = 0
    counterexample = None
    for case in islice(adversarial_cases(seed), cases):
        try:
            outputs = rule(torch.from_numpy(case.messages.copy()), case.network)
        except BezoarError as error:
            refused, refusal = refused + 1, error
            continue
        counterexample = _look(case, _as_array(outputs, case), tolerance)
        if counterexample is not None:
            break
        survived += 1
    if refused == cases:
        raise BezoarError(f"rule: it refuses every case; the last reason is: {refusal}")
    return MajorityDominance(_name(rule), survived, refused, counterexample)


def _as_array(outputs: Any, case: Case) -> Floats:
    found = np.asarray(outputs.detach() if hasattr(outputs, "detach") else outputs)
    if found.shape != case.messages.shape:
        raise BezoarError(
            f"rule: expected outputs of the shape {case.messages.shape}, found {found.shape}"
        )
    return found.astype(np.float64)


def _look(case: Case, outputs: Floats, tolerance: float) -> Counterexample | None:
    """The first bound agent that missed the majority, if one did."""
    unit = float(np.finfo(np.float64).eps)
    for agent in case.agents:
        sources = (agent, *case.network.neighbours(agent))
        inputs = case.messages[list(sources)]
        spread = np.linalg.norm(inputs - case.majority, axis=1).max()
        allowed = tolerance * spread + 64 * unit * np.linalg.norm(case.majority)
        distance = float(np.linalg.norm(outputs[agent] - case.majority))
        if not distance <= allowed:
            return Counterexample(
                attack=case.attack,
                network=case.network,
                agent=agent,
                sources=sources,
                inputs=inputs,
                expected=case.majority,
                found=outputs[agent],
                distance=distance,
            )
    return None


def _name(rule: Callable[[Any, Network], Any]) -> str:
    label = getattr(rule, "label", "")
    return str(label or getattr(rule, "__name__", "") or type(rule).__name__)
