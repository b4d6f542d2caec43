"""What came of a comparison: the ranking, and what it can carry."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bezoar import report
from bezoar._arrays import Floats
from bezoar._numbers import count, joined, listed, with_spread
from bezoar.advice._candidates import named
from bezoar.experiments import Choice, Failure, RunSpec
from bezoar.networks import Network
from bezoar.training import METRICS, Metric

#: How many of the weakest agents are shown.
WEAKEST = 5


@dataclass(frozen=True)
class Standing:
    """A rule in a comparison.

    Attributes:
        aggregator: the rule as it was trained, with every option.
        curve: its runs, one a seed.
    """

    aggregator: Choice
    curve: report.Curve

    @property
    def name(self) -> str:
        """The rule as it was asked for."""
        return self.curve.name

    def values(self, metric: str) -> Floats:
        """``[seeds]`` a metric at the end; NaN if some model is not finite there."""
        ends: Floats = self.curve.values(metric)[:, -1]
        return np.full_like(ends, np.nan) if self.curve.diverged else ends

    def mean(self, metric: str) -> float:
        """The mean over the seeds."""
        return float(self.values(metric).mean())


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rules on one network, over several seeds.

    Attributes:
        spec: what was trained, with the weighted mean and the first seed.
        network: who is linked to whom, and who is poisoned.
        metric: what rules are ranked by.
        seeds: the seeds.
        estimate: the option that says how many inputs an agent takes for poisoned.
        baseline: the weighted mean with nobody poisoned.
        others: the rules, in the order in which they are listed.
        impossible: rules that cannot be applied on this network, with the reasons.
        tests: how many samples accuracies were measured on.
        data_note: what a reader must know about the data.
        moves: whether other agents are poisoned with other seeds than the first.
    """

    spec: RunSpec
    network: Network
    metric: Metric
    seeds: tuple[int, ...]
    estimate: str
    baseline: Standing
    others: tuple[Standing, ...]
    impossible: tuple[Failure, ...] = ()
    tests: int = 10_000
    data_note: str = ""
    moves: bool = False

    @cached_property
    def ranking(self) -> tuple[Standing, ...]:
        """The rules, the best first; those whose models are not finite last."""
        return self._ranked(self.metric)

    @cached_property
    def leaders(self) -> tuple[Standing, ...]:
        """The first rule, and those that cannot be told apart from it."""
        return self._leaders(self.metric)

    def _ranked(self, metric: Metric) -> tuple[Standing, ...]:
        sign = -1 if metric.more_is_better else 1
        ends = {one.name: sign * one.mean(metric.name) for one in self.others}
        return tuple(sorted(self.others, key=lambda one: np.nan_to_num(ends[one.name], nan=np.inf)))

    def _leaders(self, metric: Metric) -> tuple[Standing, ...]:
        first, *others = self._ranked(metric)
        return (first, *(other for other in others if not self._is_ahead(first, other, metric)))

    def _is_ahead(self, one: Standing, other: Standing, metric: Metric) -> bool:
        """Whether the seeds can carry that one rule is better than another.

        Rules have the same data for a seed, so their differences are looked at seed by seed; and
        accuracies must differ by more than two standard errors of an accuracy on so many test
        samples.
        """
        theirs = other.values(metric.name)
        if np.isnan(theirs).any():
            return not np.isnan(one.values(metric.name)).any()
        leads = one.values(metric.name) - theirs
        accuracy = one.mean(metric.name) if metric.name.startswith("accuracy") else 0.0
        resolution = float(2 * np.sqrt(accuracy * (1 - accuracy) / self.tests))
        return report.is_ahead(leads if metric.more_is_better else -leads, resolution)

    @property
    def answer(self) -> str:
        """What the ranking says, as far as the spread over the seeds can carry it."""
        return " ".join([self._verdict(), *self._by_the_worst_agent()])

    def _verdict(self) -> str:
        first, *others = (one.name for one in self.leaders)
        ends, *following = (self._cell(one, self.metric.name) for one in self.ranking[:2])
        by, over = f"by {self.metric.axis}", f"over {len(self.seeds)} seeds"
        if self.ranking[0].curve.diverged:
            return "No rule ends with models that are finite."
        if len(self.seeds) == 1:
            return f"{first} comes first {by}: {ends}. A single seed cannot carry a verdict."
        if others:
            told = f"{first} comes first, but {joined(others)} cannot be told from it {over}."
            if "local" in (first, *others):
                told += " One of them is no communication, so no rule is shown to help here."
            return told
        if first == "local":
            return f"No communication is ahead of every rule {over} {by}: {ends}."
        second = "".join(f"; the next, {self.ranking[1].name}, has {cell}" for cell in following)
        return f"{first} is ahead of all others {over} {by}: {ends}{second}."

    def _by_the_worst_agent(self) -> list[str]:
        worst = METRICS["accuracy_worst"]
        if self.metric is worst or worst.name not in self.baseline.curve.metrics:
            return []
        first, *others = self._leaders(worst)
        if others or self.leaders == (first,) or len(self.seeds) == 1:
            return []
        return [f"By the worst agent {first.name} is ahead: {self._cell(first, worst.name)}."]

    @property
    def assumption(self) -> str:
        """What the rules are told about poisoned inputs, in a sentence."""
        if self.estimate == "exact":
            return (
                "Every agent is told how many of its inputs are poisoned, as in the paper; no real "
                "agent knows that."
            )
        if self.estimate == "max":
            return "Every agent is told the largest number of poisoned inputs at any agent."
        assumed = self.estimate.removeprefix("up_to_")
        return (
            f"Every agent takes {assumed} of its inputs for poisoned, or as many as its rule can "
            "bear if that is less."
        )

    @property
    def panel(self) -> report.Panel:
        """The curves of all rules and the baseline."""
        curves = (*(one.curve for one in self.ranking), self.baseline.curve)
        return report.Panel(f"{self.network.name}, {self.spec.partition}", curves, self.network)

    @property
    def note(self) -> str:
        """What a reader must know about the data and the network, in sentences."""
        spec, network = self.spec, self.network
        return " ".join(
            report.notes_about(spec.dataset, self.data_note, spec.network, network.note)
        )

    def page(self) -> report.Page:
        """The ranking as a table, what was trained, and what could not be."""
        spec, seeds = self.spec, listed(self.seeds)
        trained = (
            f"{spec.model} on {spec.dataset}, {spec.partition}, attack {spec.attack}; "
            f"{count(spec.iterations, 'iteration')}; "
            f"{'seed' if len(self.seeds) == 1 else 'seeds'} {seeds}."
        )
        about = (
            "baseline: the weighted mean with nobody poisoned; local: no communication; gap: "
            "difference to the baseline; ±: standard deviation over the seeds."
        )
        sentences = [trained, self.assumption, about, self.note]
        tables = [self._table(), *self._weakest()]
        if self.impossible:
            rows = [(str(failure.spec.aggregator), failure.reason) for failure in self.impossible]
            tables.append(report.Table.of("Impossible here", ("rule", "why"), rows))
        return report.Page(
            name="compare",
            title=f"{spec.network}: {report.describe(self.network)}"
            + (f" with seed {self.seeds[0]}, others with other seeds" if self.moves else ""),
            caption="\n".join(filter(None, sentences)),
            tables=tuple(tables),
        )

    def _table(self) -> report.Table:
        told = report.shown_first(self.baseline.curve.runs)
        metrics = list(dict.fromkeys([self.metric.name, *told]))
        rows = []
        for one in (self.baseline, *self.ranking):
            ends = [self._cell(one, metric) for metric in metrics]
            gap = "" if one is self.baseline else _three_digits(self._gap(one), "+z")
            rows.append((one.name, *ends, gap, _three_digits(one.mean("poison_share"))))
        heads = [METRICS[metric].column or metric for metric in metrics]
        title = f"Ranked by {self.metric.title}"
        return report.Table.of(title, ("rule", *heads, "gap", "poison"), rows)

    def _weakest(self) -> list[report.Table]:
        """The weakest agents under the first rule, and whom they listened to."""
        first, network = self.ranking[0], self.network
        run = first.curve.runs[0]
        if "accuracy" not in run.agents or not run.listening:
            return []
        regular = sorted(network.regular, key=lambda agent: run.agents["accuracy"][-1, agent])
        shown = regular[:WEAKEST]
        title = f"The weakest agents with {first.name}, seed {self.seeds[0]}"
        return [report.agents_table(run, network, shown, title)]

    def _cell(self, one: Standing, metric: str) -> str:
        """A metric at the end: the mean over the seeds, and how far they spread."""
        if one.curve.diverged:
            return "diverged"
        # More than three digits of an accuracy are beyond what so many test samples can show.
        digits = 3 if metric.startswith("accuracy") else None
        return with_spread(one.values(metric).tolist(), digits)

    def _gap(self, one: Standing) -> float:
        return one.mean(self.metric.name) - self.baseline.mean(self.metric.name)

    def document(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "spec": self.spec.model_dump(mode="json"),
            "poisoned": list(self.network.poisoned),
            "seeds": list(self.seeds),
            "metric": self.metric.name,
            "estimate": self.estimate,
            "data_note": self.data_note,
            "network_note": self.network.note,
            "baseline": self._entry(self.baseline),
            "ranking": [self._entry(one) for one in self.ranking],
            "impossible": [
                named(failure.spec.aggregator) | {"reason": failure.reason}
                for failure in self.impossible
            ],
            "leaders": [one.name for one in self.leaders],
            "answer": self.answer,
        }

    def _entry(self, one: Standing) -> dict[str, Any]:
        means: dict[str, Any] = {metric: one.mean(metric) for metric in one.curve.metrics}
        if accuracy := [run.agents["accuracy"][-1] for run in one.curve.runs if run.agents]:
            means["agents"] = np.mean(accuracy, axis=0).tolist()
        seeds = {metric: one.values(metric).tolist() for metric in one.curve.metrics}
        more = {"gap": self._gap(one), "seeds": seeds, "diverged": one.curve.diverged}
        return named(one.aggregator) | means | more


def _three_digits(value: float, sign: str = "") -> str:
    return "–" if np.isnan(value) else f"{value:{sign}.3f}"
