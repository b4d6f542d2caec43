"""What was trained for a figure of the paper."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bezoar.data import Dataset
from bezoar.experiments import RunSpec, StoredRun, network_of
from bezoar.paper._comparisons import Comparison, Figure, Place
from bezoar.paper._criteria import Curves
from bezoar.paper._recipes import DATASET_TITLES, Recipe, Variant
from bezoar.report import BASELINE, Curve, Panel


@dataclass(frozen=True)
class TrainedComparison:
    """A comparison with its runs.

    Attributes:
        comparison: what was asked for.
        specs: its runs, each with its place.
        runs: what became of them.
        dataset: what was learned from.
    """

    comparison: Comparison
    specs: Sequence[tuple[Place, RunSpec]]
    runs: Sequence[StoredRun]
    dataset: Dataset

    @property
    def recipe(self) -> Recipe:
        """How models were trained."""
        return self.comparison.recipe

    @cached_property
    def curves(self) -> Curves:
        """The curve of each place, and what they were measured by."""
        found: dict[Place, list[StoredRun]] = {}
        for (place, _), run in zip(self.specs, self.runs, strict=True):
            found.setdefault(place, []).append(run)
        curves = {
            place: Curve(rule, tuple(runs), options)
            for place, runs in found.items()
            for rule, _, options in [place.rule.partition(":")]
        }
        names = {name: self.recipe.metric(name) for name in ("accuracy", "consensus_error")}
        return Curves(curves, names, len(self.dataset.test))

    @property
    def seeds(self) -> int:
        """The largest number of seeds that a curve has."""
        return max(len(curve.runs) for curve in self.curves.by_place.values())

    def panels(self, title: Callable[[str, str], str], baseline: bool = True) -> list[Panel]:
        """A panel for each network and partition; ``title`` names them."""
        figure, curves = self.comparison.figure, self.curves.by_place
        networks = {p.network: network_of(spec) for p, spec in self.specs if p.rule != BASELINE}
        rules = (*figure.rules, BASELINE) if baseline else figure.rules
        return [
            Panel(
                title(network, partition),
                tuple(curves[Place(network, partition, rule)] for rule in rules),
                networks[network],
            )
            for network in figure.networks
            for partition in figure.partitions
        ]

    @property
    def too_short(self) -> bool:
        """Whether the runs are shorter than the figure's."""
        return self.recipe.iterations < self.recipe.length

    def remarks(self) -> list[str]:
        """How this differs from the paper, in the words of a claim that was "judged …"."""
        recipe, variant = self.recipe, self.recipe.variant
        said = {
            "at small scale": variant.scale == "small",
            "at quick scale": variant.scale == "quick",
            "with the authors' settings": variant.setting == "authors",
            f"with the clipping threshold {variant.clipping}": variant.clipping is not None,
            "on fewer images": bool(self.dataset.note),
            f"after {recipe.iterations:,} instead of {recipe.length:,} iterations": (
                recipe.iterations != recipe.length
            ),
        }
        return [remark for remark, is_so in said.items() if is_so]


@dataclass(frozen=True)
class TrainedFigure:
    """A figure with what was trained for it.

    Attributes:
        figure: which.
        variant: how it was reproduced.
        parts: what was trained, a comparison for each dataset.
        command: what was typed.
    """

    figure: Figure
    variant: Variant
    parts: Sequence[TrainedComparison]
    command: str

    @property
    def name(self) -> str:
        """The name of its folder and files: variants never share one."""
        return variant_name(self.figure, self.variant)

    def about(self, part: TrainedComparison) -> str:
        """The beginning of texts about a part: its dataset, if the figure also has another one."""
        known = self.figure.datasets == (part.recipe.dataset,)
        return "" if known else f"{DATASET_TITLES[part.recipe.dataset]}: "


def variant_name(figure: Figure, variant: Variant) -> str:
    """What a variant of a figure is called, as ``fig3-small-authors``."""
    return "-".join([figure.name, *shown_variant(figure, variant).values()])


def shown_variant(figure: Figure, variant: Variant) -> dict[str, str]:
    """The scale and the setting of a figure, where they make it another than the paper's."""
    used = [comparison.recipe.variant for comparison in figure.comparisons(variant)]
    scales = [str(each.scale) for each in used if each.scale != "paper"]
    settings = [str(each.setting) for each in used if each.setting != "paper"]
    return {name: v[0] for name, v in (("scale", scales), ("setting", settings)) if v}
