"""The runs on which Theorems 1 and 2 are checked, and how fast consensus errors fall."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from bezoar import aggregators, attacks, data, theory
from bezoar._options import choose
from bezoar._seeds import Purpose, generator
from bezoar.experiments import Progress, part_of
from bezoar.networks import Network, create
from bezoar.paper._theorems import TheoremCheck, reduced_mnist, verify
from bezoar.training import Engine, Horizon, Run, SoftmaxTask, Task, Workers, random_quadratics

#: What the agents learn: softmax regression on MNIST, divided in three ways, or quadratics.
OBJECTIVES = {
    "iid": "MNIST, i.i.d.",
    "dirichlet": "MNIST, Dirichlet(1)",
    "by_class": "MNIST, by class",
    "quadratic": "random strongly convex quadratics",
}

#: The weighted mean and every rule with a virtual mixing matrix.
THEOREM_RULES = ("weighted_mean", *theory.MATRIX_OF)

#: Messages of these runs lie 0.1 to 0.3 apart. A threshold that clips many regular inputs makes
#: ρ approach 1, which Theorem 1 does not cover: with 0.1, by class, ρ is 0.95.
CLIPPING = 0.3

AGENTS, ITERATIONS = 20, 150


def theorem_networks() -> tuple[Network, ...]:
    """Two networks that meet the theorems' conditions and one, the fan, that has ``λ > 1``."""
    return tuple(create(name, agents=AGENTS) for name in ("complete", "two_castle", "fan"))


def theorem_study(
    objectives: Sequence[str] = tuple(OBJECTIVES),
    networks: Sequence[Network] | None = None,
    rules: Sequence[str] = THEOREM_RULES,
    iterations: int = ITERATIONS,
    workers: int | None = None,
    clipping: float = CLIPPING,
    progress: Progress | None = None,
) -> dict[str, list[TheoremCheck]]:
    """Compare every rule with its theorem, on several objectives and networks.

    Objectives are of :data:`OBJECTIVES`, with MNIST as :func:`reduced_mnist` and labels flipped;
    rules are of :data:`THEOREM_RULES`. Networks are of one size, by default
    :func:`theorem_networks`; ``clipping`` is the threshold of CC and CG. The rest is as for
    :func:`verify`.

    Returns:
        For each objective a check for each network and rule.
    """
    for objective in objectives:
        choose("objective", objective, OBJECTIVES)
    networks = theorem_networks() if networks is None else networks
    flip = attacks.create("label_flip")
    runs = [Run(network, _rule(rule, clipping), flip) for network in networks for rule in rules]
    checks = {}
    for place, objective in enumerate(objectives):
        report = part_of(progress, place * iterations, len(objectives) * iterations)
        task = partial(_task, objective)
        checks[objective] = verify(task, runs, iterations, workers=workers, progress=report)
    return checks


def _task(objective: str, runs: Sequence[Run], workers: Workers) -> Task:
    if objective == "quadratic":
        return random_quadratics(runs, workers)
    dataset = reduced_mnist()
    rng = generator(0, Purpose.PARTITION)
    divide = data.partition(objective)
    partition = divide(dataset.train_labels, dataset.classes, runs[0].network.agents, rng)
    return SoftmaxTask(dataset, partition, runs, workers, "float64")


def consensus_exponents(
    network: Network,
    rules: Sequence[str] = THEOREM_RULES,
    iterations: Sequence[int] = (64, 128, 256, 512),
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """How the largest consensus error of a run falls with ``K`` when ``γ = 1/√K``.

    By Theorems 1 and 2 it falls like ``1/K``. The objective is random quadratics; the clipping
    thresholds shrink with the step size, as the distances do. On a complete network all consensus
    errors are rounding, so a slope means nothing.

    Returns:
        For each rule the slope of the logarithm of the error over that of ``K``.
    """
    largest = np.empty((len(iterations), len(rules)))
    flip = attacks.create("label_flip")
    with Workers(workers) as pool, pool.alone():
        for place, total in enumerate(iterations):
            clipping = CLIPPING * (ITERATIONS / total) ** 0.5
            runs = [Run(network, _rule(rule, clipping), flip, Horizon()) for rule in rules]
            report = part_of(progress, sum(iterations[:place]), sum(iterations))
            task = random_quadratics(runs, pool)
            engine = Engine(task, iterations=total, metrics=("consensus_error",))
            histories = engine.train(report)
            largest[place] = [history["consensus_error"].max() for history in histories]
    slopes = np.polyfit(np.log(iterations), np.log(largest), 1)[0]
    return dict(zip(rules, slopes.tolist(), strict=True))


def _rule(name: str, clipping: float) -> aggregators.Aggregator:
    options = {"threshold": clipping} if "clip" in name else {}
    return aggregators.create(name, **options)
