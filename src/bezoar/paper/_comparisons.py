"""What each figure of the paper compares."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from bezoar._errors import BezoarError
from bezoar.experiments import RunSpec, network_of
from bezoar.paper._recipes import (
    CLASSES,
    DATASET_TITLES,
    PARTITIONS,
    SCALES,
    Fields,
    Recipe,
    Variant,
    recipe,
)
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

PARTITION_TITLES = {"iid": "i.i.d.", "mild": "mild non-i.i.d.", "by_class": "by class"}

#: How a figure is laid out: a column for each partition, a row for each network, or gradients with
#: a column for each partition.
Layout = Literal["partitions", "networks", "gradients"]


class Place(NamedTuple):
    """Where a run belongs in a comparison; runs that differ in their seeds alone share a place.

    Attributes:
        network: as it is typed.
        partition: of :data:`PARTITIONS`.
        rule: a rule, perhaps with options as they are typed, or ``"baseline"``: the weighted mean
            with nobody poisoned.
    """

    network: str
    partition: str
    rule: str


@dataclass(frozen=True)
class Figure:
    """A figure of the paper that runs are trained for.

    Attributes:
        name: as given to ``bezoar reproduce``.
        heading: what it is, without its number.
        section: where the paper speaks of it.
        datasets: what is learned from.
        networks: as they are typed, with their titles.
        partitions, rules: what is compared.
        metrics: what is shown, in the paper's words; see :meth:`Recipe.metric`.
        layout: how it is laid out.
        poison: who is poisoned, in a sentence without its end.
        fields: how long it trains and what it measures, if not as the paper's other figures do.
        small: what is learned from at small scale, if something else.
    """

    name: str
    heading: str
    section: str
    datasets: tuple[str, ...]
    networks: Mapping[str, str]
    partitions: tuple[str, ...] = tuple(PARTITIONS)
    rules: tuple[str, ...] = RULES
    metrics: tuple[str, ...] = ("accuracy", "consensus_error")
    layout: Layout = "partitions"
    poison: str = "one of ten agents has flipped labels"
    fields: Fields = field(default_factory=dict)
    small: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The heading with the figure's number."""
        number = self.name.removeprefix("fig").partition("-")[0]
        return f"Figure {number}: {self.heading}"

    def panel_title(self, network: str, partition: str) -> str:
        """The network and the partition."""
        return f"{self.networks[network]}, {PARTITION_TITLES[partition]}"

    def where(self, network: str, partition: str) -> str:
        """The title of a panel among the figure's own: the network if there are several."""
        several = len(self.networks) > 1
        return self.networks[network] if several else PARTITION_TITLES[partition]

    def comparisons(self, variant: Variant | None = None) -> "tuple[Comparison, ...]":
        """What is compared, a comparison for each dataset."""
        variant = variant or Variant()
        instead = self.small if variant.scale == "small" else ()
        found = []
        for dataset in instead or self.datasets:
            has_scale = instead or dataset in SCALES[variant.scale]
            used = variant if has_scale else replace(variant, scale="paper")
            found.append(Comparison(self, recipe(dataset, used, self.fields)))
        return tuple(found)


@dataclass(frozen=True)
class Comparison:
    """The rules of a figure, compared on one dataset as a recipe says.

    Every combination of the figure's networks, partitions and rules is a curve, and so is the
    baseline on every network and partition.
    """

    figure: Figure
    recipe: Recipe

    def runs(self, seeds: int = 1) -> list[tuple[Place, RunSpec]]:
        """The runs: network after network, partition after partition.

        Where nothing is drawn at random, there is one run with seed 0, however many the seeds.
        """
        if seeds < 1:
            raise BezoarError(f"seeds: expected at least 1, found {seeds}")
        return [
            (Place(network, partition, rule), self.recipe.spec(network, partition, rule, seed))
            for network in self.figure.networks
            for partition in self.figure.partitions
            for seed in range(seeds if self.is_random(network, partition) else 1)
            for rule in (*self.figure.rules, BASELINE)
        ]

    def is_random(self, network: str, partition: str) -> bool:
        """Whether another seed gives other curves.

        By class, samples are divided at random only where there are fewer classes than agents.
        Label flips are never random.
        """
        agents = network_of(self.recipe.spec(network, partition, BASELINE, 0)).agents
        drawn = partition != "by_class" or agents > CLASSES[self.recipe.dataset]
        return drawn or self.recipe.is_random


_SCENARIOS = {
    "two_castle": "Section IV, scenario (i)",
    "line": "Section IV, scenario (ii)",
    "fan": "Section IV, scenario (iii)",
}
_SUPPLEMENT = "Supplement, Additional Experiments"


def _by_partition(name: str, dataset: str, network: str, section: str = "") -> Figure:
    title = NETWORK_TITLES[network]
    heading = f"{DATASET_TITLES[dataset]} on the {title.lower()} network"
    section = section or _SCENARIOS[network]
    return Figure(name, heading, section, (dataset,), {network: title})


def _gradients(name: str, *datasets: str) -> Figure:
    return Figure(
        name,
        "heterogeneity and disturbance on the two-castle network",
        _SCENARIOS["two_castle"],
        datasets,
        {"two_castle": NETWORK_TITLES["two_castle"]},
        metrics=("heterogeneity", "disturbance"),
        layout="gradients",
    )


def _ablation(name: str, what: str, poison: str, networks: Mapping[str, str]) -> Figure:
    return Figure(
        name,
        f"the two-castle network with {what}",
        _SUPPLEMENT,
        ("tiny_imagenet",),
        networks,
        partitions=("by_class",),
        layout="networks",
        poison=poison,
        small=("mnist",),
    )


#: The figures that runs are trained for, by their names. Figure 4 shows the runs of Figures 2 and
#: 3; its half about MNIST can be had alone.
FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "fig1",
            "a motivating example",
            "Section I, A Motivating Example",
            ("mnist",),
            {name: NETWORK_TITLES[name] for name in ("two_castle", "fan")},
            partitions=("by_class",),
            rules=MOTIVATING_RULES,
            layout="networks",
            fields={
                "iterations": 500,
                "every": 10,
                "metrics": ("accuracy", "accuracy_worst", "consensus_error", "poison_share"),
            },
        ),
        _by_partition("fig2", "mnist", "two_castle"),
        _by_partition("fig3", "cifar100", "two_castle"),
        _gradients("fig4", "mnist", "cifar100"),
        _gradients("fig4-mnist", "mnist"),
        _by_partition("fig5", "mnist", "line"),
        _by_partition("fig6", "cifar100", "line"),
        _by_partition("fig7", "mnist", "fan"),
        _by_partition("fig8", "cifar100", "fan"),
        _by_partition("fig11", "tiny_imagenet", "two_castle", _SUPPLEMENT),
        _ablation(
            "fig12",
            "R regular agents of ten",
            "the agents that are not regular have flipped labels",
            {f"two_castle:poisoned={10 - regular}": f"R = {regular}" for regular in (9, 8, 7)},
        ),
        _ablation(
            "fig13",
            "W agents",
            "one of W agents has flipped labels",
            {f"two_castle:agents={agents}": f"W = {agents}" for agents in (10, 20, 30)},
        ),
    )
}

#: What needs no training.
_THEORY = ("fig9", "fig10", "table1", "table2")

#: Everything of the paper that is about MNIST or about no dataset.
MNIST_FIGURES = ("fig1", "fig2", "fig4-mnist", "fig5", "fig7", *_THEORY)

#: Every figure and table of the paper.
ALL_FIGURES = (*(name for name in FIGURES if name != "fig4-mnist"), *_THEORY)
