"""How the learning error moves with the two contamination rates (Table II, as an experiment).

Table II speaks of the worst case, and so does this: costs are the two labels of Theorem 3's proof,
and a rule's error is that in the worse of two instances. For one fixed objective the ordering need
not show: with class-like quadratics on circulant networks the robust rules' errors did not grow
monotonically with ``δ_max``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt

import networkx as nx
import numpy as np

from bezoar import aggregators, attacks, theory
from bezoar._errors import BezoarError
from bezoar.experiments import Progress, part_of
from bezoar.networks import Network
from bezoar.training import Constant, Engine, QuadraticTask, Run, Workers

#: The weighted mean and the majority-dominant rules of the paper.
RULES = ("weighted_mean", "trimmed_mean", "faba", "ios")

#: Small, because the weighted mean's error is ``δ²`` up to terms of its order.
STEP = 0.01

#: The start is forgotten after a few hundred.
ITERATIONS = 800

#: The numbers of regular and poisoned agents: at most one poisoned agent in four.
REGULAR, POISONED = 45, 15


@dataclass(frozen=True)
class LearningError:
    """How well a rule does on a network, in the worse of two instances.

    Attributes:
        rule: the aggregator's name.
        delta: the global contamination rate ``δ``.
        delta_max: the local contamination rate ``δ_max``.
        instances: ``‖∇f(x̄^K)‖²`` in the first and in the second instance.
    """

    rule: str
    delta: float
    delta_max: float
    instances: tuple[float, float]

    @property
    def error(self) -> float:
        """The larger of the two."""
        return max(self.instances)


@dataclass(frozen=True)
class ContaminationStudy:
    """Learning errors along either contamination rate, the other one held fixed.

    Attributes:
        by_delta_max: the same ``δ``, networks from dense to sparse.
        by_delta: the same ``δ_max``, from few to many poisoned agents.
    """

    by_delta_max: tuple[LearningError, ...]
    by_delta: tuple[LearningError, ...]


def contamination_study(
    rules: Sequence[str] = RULES,
    iterations: int = ITERATIONS,
    workers: int | None = None,
    progress: Progress | None = None,
) -> ContaminationStudy:
    """The weighted mean's learning error follows ``δ²``, the robust rules' follows ``δ_max``.

    Networks are :func:`block_network`, and there are two instances with the costs of the proof of
    Theorem 3. What they are, and which errors follow, is in docs/theory.md. The rules are trained
    for ``K`` iterations, on as many threads as there are workers, by default one a core; progress
    is told after every iteration.
    """
    dense_to_sparse = [block_network(heard=heard) for heard in (15, 9, 5, 3)]
    few_to_many = [block_network(poisoned=poisoned, heard=15) for poisoned in (3, 5, 9)]
    networks = [*few_to_many, *dense_to_sparse]
    flip, schedule, every = attacks.create("label_flip"), Constant(STEP), max(1, iterations)
    found: dict[tuple[Network, str], LearningError] = {}
    sizes = sorted({network.agents for network in networks})
    with Workers(workers) as pool, pool.alone():
        for before, agents in enumerate(sizes):
            here = product((n for n in networks if n.agents == agents), rules)
            places = [(*place, instance) for place in here for instance in (0, 1)]
            runs = [Run(n, aggregators.create(rule), flip, schedule) for n, rule, _ in places]
            labels = [_labels(network, instance) for network, _, instance in places]
            task = QuadraticTask(np.eye(2), -np.eye(2)[labels] / sqrt(2), runs, pool)
            engine = Engine(task, iterations=iterations, every=every, metrics=("gradient_norm",))
            report = part_of(progress, before * iterations, len(sizes) * iterations)
            last = [float(history["gradient_norm"][-1]) for history in engine.train(report)]
            pairs = zip(last[::2], last[1::2], strict=True)
            for (network, rule, _), both in zip(places[::2], pairs, strict=True):
                rates = theory.contamination(network)
                found[network, rule] = LearningError(rule, rates.delta, rates.delta_max, both)
    # The densest of the first row is the most poisoned of the second.
    return ContaminationStudy(
        tuple(found[place] for place in product(dense_to_sparse, rules)),
        tuple(found[place] for place in product([*few_to_many, dense_to_sparse[0]], rules)),
    )


def block_network(regular: int = REGULAR, poisoned: int = POISONED, heard: int = 3) -> Network:
    """Regular agents around a ring, each with ``heard`` regular inputs and one poisoned one.

    Regular agents are ``0 … R-1``; each is linked to the ``(heard−1)/2`` next ones on either side,
    or to all others if ``heard`` is ``R``. Poisoned agents are the last; each is linked to a block
    of ``R/P`` consecutive regular agents. So ``δ = P/(R+P)`` and ``δ_max = 1/(heard+1)``.

    Args:
        regular: ``R``, a multiple of ``poisoned`` and of ``heard``.
        poisoned: ``P``. A block must not be longer than ``heard``, so that no poisoned agent has
            two neighbours with label 2 in :func:`contamination_study`.
        heard: an odd number from 3, or ``R``.
    """
    for field, found in (("poisoned", poisoned), ("heard", heard)):
        if found < 1 or regular % found:
            raise BezoarError(f"{field}: expected a divisor of {regular}, found {found!r}")
    if heard != regular and (heard < 3 or heard % 2 == 0):
        raise BezoarError(f"heard: expected an odd number from 3, or {regular}, found {heard!r}")
    block = regular // poisoned
    if block > heard:
        raise BezoarError(
            f"poisoned: expected at least {regular // heard} for {heard} inputs, found {poisoned}"
        )
    graph = nx.circulant_graph(regular, range(1, heard // 2 + 1))
    graph.add_edges_from((agent, regular + agent // block) for agent in range(regular))
    return Network(graph, range(regular, regular + poisoned), name=f"blocks of {heard}")


def _labels(network: Network, instance: int) -> list[int]:
    """``[W]`` label 0 or 1, called 1 and 2 in docs/theory.md, of every agent."""
    if instance == 0:
        return [int(poisoned) for poisoned in network.poisoned_mask]
    heard = int(network.degrees[0])  # the own model for the poisoned input
    regular = len(network.regular)
    return [int(agent < regular and agent % heard == 0) for agent in range(network.agents)]
