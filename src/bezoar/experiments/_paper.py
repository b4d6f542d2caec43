"""The paper's experiments on MNIST as specs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bezoar._errors import BezoarError
from bezoar.experiments._spec import Choice, RunSpec

#: The rules of the paper's experiments, in the order of its legends.
RULES = (
    "weighted_mean",
    "trimmed_mean",
    "faba",
    "centered_clipping",
    "clipped_gossip",
    "ios",
    "rfa",
    "lfighter",
)

#: Those of its motivating example.
MOTIVATING_RULES = RULES[:6]

#: The weighted mean with nobody's labels poisoned: what attacks and rules are held against.
BASELINE = "baseline"

#: The paper's networks, with the names it gives them.
NETWORKS = {"two_castle": "Two-castle", "line": "Line", "fan": "Fan"}

#: How the paper hands out the samples: i.i.d., mildly and highly non-i.i.d.
PARTITIONS = {
    "iid": Choice(name="iid"),
    "mild": Choice(name="dirichlet", options={"alpha": 1.0}),
    "by_class": Choice(name="by_class"),
}

PARTITION_TITLES = {"iid": "i.i.d.", "mild": "mild non-i.i.d.", "by_class": "by class"}

#: Partitions that are drawn at random. By class, ten agents hold a digit each, and flipping labels
#: draws nothing either: every seed gives the same bits, so one seed is enough.
DRAWN = frozenset({"iid", "mild"})

#: The clipping threshold for the paper's steps 0.1/√k. The paper gives none; its authors' code
#: clips at 0.03 with steps 0.03/√k, and what an agent moves in a step scales with the step.
CLIPPING = {"threshold": 0.1}

OPTIONS = {"centered_clipping": CLIPPING, "clipped_gossip": CLIPPING}

#: Iterations, and iterations between measurements, of a minute's impression of a figure.
QUICK_ITERATIONS, QUICK_EVERY = 40, 4


class Place(NamedTuple):
    """A curve of a figure; runs that differ in their seeds alone share it.

    Attributes:
        network: of :data:`NETWORKS`.
        partition: of :data:`PARTITIONS`.
        rule: the aggregator's name, or ``"baseline"``.
    """

    network: str
    partition: str
    rule: str


@dataclass(frozen=True)
class Cell:
    """A run of a figure.

    Attributes:
        place: the curve it belongs to.
        spec: the run.
    """

    place: Place
    spec: RunSpec


@dataclass(frozen=True)
class Setting:
    """What a figure of the paper compares.

    Attributes:
        networks, partitions, rules: every combination is a curve, and so is the baseline on every
            network and partition.
        iterations: how long to train.
        every: iterations between measurements.
        metrics: what to measure; ``None`` for everything.
    """

    networks: tuple[str, ...]
    partitions: tuple[str, ...] = tuple(PARTITIONS)
    rules: tuple[str, ...] = RULES
    iterations: int = 1000
    every: int = 20
    metrics: tuple[str, ...] | None = None

    def shortened(self, quick: bool = False, iterations: int | None = None) -> "Setting":
        """The same for an impression, or with another number of iterations."""
        short = self
        if quick:
            short = replace(short, iterations=QUICK_ITERATIONS, every=QUICK_EVERY)
        return replace(short, iterations=iterations or short.iterations)

    def cells(self, seeds: Iterable[int] = (0,)) -> list[Cell]:
        """The runs of the figure: network after network, partition after partition.

        Where nothing is drawn at random, there is one run with seed 0, whatever the seeds.
        """
        drawn_seeds = tuple(seeds)
        return [
            Cell(Place(network, partition, rule), self._spec(network, partition, rule, seed))
            for network in self.networks
            for partition in self.partitions
            for seed in (drawn_seeds if partition in DRAWN else (0,))
            for rule in (*self.rules, BASELINE)
        ]

    def _spec(self, network: str, partition: str, rule: str, seed: int) -> RunSpec:
        common = RunSpec(
            network=Choice(name=network),
            partition=PARTITIONS[partition],
            iterations=self.iterations,
            every=self.every,
            metrics=self.metrics,
            seed=seed,
        )
        if rule == BASELINE:
            return common.model_copy(update={"poisoned": ()})
        aggregator = Choice(name=rule, options=OPTIONS.get(rule, {}))
        return common.model_copy(update={"aggregator": aggregator})


#: The figures that runs are trained for. Figures 2 and 4 show the same runs.
SETTINGS = {
    "fig1": Setting(
        networks=("two_castle", "fan"),
        partitions=("by_class",),
        rules=MOTIVATING_RULES,
        iterations=500,
        every=10,
        metrics=("accuracy", "accuracy_worst", "consensus_error", "poison_share"),
    ),
    "fig2": Setting(networks=("two_castle",)),
    "fig4": Setting(networks=("two_castle",)),
    "fig5": Setting(networks=("line",)),
    "fig7": Setting(networks=("fan",)),
}

#: Everything of the paper that is about MNIST or about no dataset.
MNIST = ("fig1", "fig2", "fig4", "fig5", "fig7", "fig9", "fig10", "table1", "table2")


def first_seeds(count: int) -> tuple[int, ...]:
    """The seeds ``0 … count − 1``."""
    if count < 1:
        raise BezoarError(f"seeds: expected at least 1, found {count}")
    return tuple(range(count))


def distinct_specs(cells: Iterable[Sequence[Cell]]) -> list[RunSpec]:
    """The runs behind several figures, each once: what one sweep trains together."""
    return list(dict.fromkeys(cell.spec for figure in cells for cell in figure))
