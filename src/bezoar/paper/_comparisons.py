"""What is trained for the paper's figures on MNIST."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bezoar._errors import BezoarError
from bezoar.experiments import RunSpec
from bezoar.report import BASELINE

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

#: The paper's networks, with the names it gives them.
NETWORK_TITLES = {"two_castle": "Two-castle", "line": "Line", "fan": "Fan"}

#: The paper's partitions: i.i.d., mildly and highly non-i.i.d.
PARTITIONS = {
    "iid": "iid",
    "mild": "dirichlet:alpha=1",
    "by_class": "by_class",
}

PARTITION_TITLES = {"iid": "i.i.d.", "mild": "mild non-i.i.d.", "by_class": "by class"}

#: Partitions that are drawn at random. By class, each of ten agents has one digit, and flipping
#: labels draws nothing either: every seed gives the same bits, so one seed is enough.
DRAWN = frozenset({"iid", "mild"})

#: The clipping threshold for the paper's steps 0.1/√k. The paper gives none; its authors' code
#: clips at 0.03 with steps 0.03/√k, and what an agent moves in a step scales with the step.
CLIPPING = {"threshold": 0.1}

OPTIONS = {"centered_clipping": CLIPPING, "clipped_gossip": CLIPPING}

#: Iterations, and iterations between measurements, of a figure that takes a minute.
QUICK_ITERATIONS, QUICK_EVERY = 40, 4


class Place(NamedTuple):
    """Where a run belongs in a figure; runs that differ in their seeds alone share a place.

    Attributes:
        network: of :data:`NETWORK_TITLES`.
        partition: of :data:`PARTITIONS`.
        rule: the aggregator's name, or ``"baseline"``: the weighted mean with nobody poisoned.
    """

    network: str
    partition: str
    rule: str


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
        """The same figure with few iterations, or with another number of iterations."""
        short = self
        if quick:
            short = replace(short, iterations=QUICK_ITERATIONS, every=QUICK_EVERY)
        return replace(short, iterations=iterations or short.iterations)

    def runs(self, seeds: int = 1) -> list[tuple[Place, RunSpec]]:
        """The runs of the figure: network after network, partition after partition.

        Where nothing is drawn at random, there is one run with seed 0, however many the seeds.
        """
        if seeds < 1:
            raise BezoarError(f"seeds: expected at least 1, found {seeds}")
        return [
            (Place(network, partition, rule), self._spec(network, partition, rule, seed))
            for network in self.networks
            for partition in self.partitions
            for seed in range(seeds if partition in DRAWN else 1)
            for rule in (*self.rules, BASELINE)
        ]

    def _spec(self, network: str, partition: str, rule: str, seed: int) -> RunSpec:
        fields: dict[str, Any] = {
            "network": network,
            "partition": PARTITIONS[partition],
            "iterations": self.iterations,
            "every": self.every,
            "metrics": self.metrics,
            "seed": seed,
        }
        if rule == BASELINE:
            return RunSpec.read(fields | {"poisoned": ()})
        return RunSpec.read(fields | {"aggregator": {"name": rule, **OPTIONS.get(rule, {})}})


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
MNIST_FIGURES = ("fig1", "fig2", "fig4", "fig5", "fig7", "fig9", "fig10", "table1", "table2")
