"""What pilots found: how much every rule lost in every scenario, and the ranking that follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from bezoar._arrays import Floats
from bezoar.advice._candidates import named
from bezoar.advice._regret import Regret, by_regret
from bezoar.advice._scenarios import Scenario
from bezoar.experiments import Choice


@dataclass(frozen=True)
class RankedRule:
    """How a rule did in the scenarios that it was tried in, or in the cases of a study.

    Attributes:
        aggregator: the rule, with its options.
        regret_mean: how much mean agent accuracy it lost against the best rule of a scenario, on
            average.
        regret_worst: the same in the scenario where it lost most.
        accuracy_mean: the regular agents' mean accuracy, on average.
        accuracy_worst: the same in the scenario where it was lowest.
        scenarios: how many scenarios or cases there were. In pilots, a rule that falls far behind
            is dropped.
    """

    aggregator: Choice
    regret_mean: float
    regret_worst: float
    accuracy_mean: float
    accuracy_worst: float
    scenarios: int

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        return named(self.aggregator) | {k: v for k, v in vars(self).items() if k != "aggregator"}


@dataclass(frozen=True, eq=False)
class PilotResults:
    """The accuracies of all rules in all scenarios.

    Attributes:
        rules: the rules, by how they are typed.
        scenarios: what was tried.
        accuracy: ``[rules, scenarios]`` mean accuracy of the regular agents; NaN where a rule had
            been dropped.
        iterations: how long the pilots were.
    """

    rules: Mapping[str, Choice]
    scenarios: Sequence[Scenario]
    accuracy: Floats
    iterations: int

    @classmethod
    def none_yet(cls, rules: Mapping[str, Choice]) -> "PilotResults":
        """Before the first pilot."""
        return cls(rules, (), np.empty((len(rules), 0)), 0)

    def and_these(
        self,
        tried: Mapping[str, Choice],
        scenarios: Sequence[Scenario],
        accuracy: Floats,
        iterations: int,
    ) -> "PilotResults":
        """With ``[tried, scenarios]`` more accuracies."""
        more = np.full((len(self.rules), len(scenarios)), np.nan)
        more[[place for place, text in enumerate(self.rules) if text in tried]] = accuracy
        return PilotResults(
            self.rules,
            (*self.scenarios, *scenarios),
            np.hstack([self.accuracy, more]),
            max(self.iterations, iterations),
        )

    def of(self, values: Floats, choice: Choice) -> Floats:
        """``[scenarios]`` the row of ``[rules, scenarios]`` values that belongs to a rule."""
        row: Floats = values[list(self.rules.values()).index(choice)]
        return row

    @property
    def regret(self) -> Floats:
        """``[rules, scenarios]`` what each rule lost against the best rule of the scenario."""
        best: Floats = np.nanmax(self.accuracy, axis=0)
        return best - self.accuracy

    def ranking(self, known: Mapping[str, float] | None = None) -> list[RankedRule]:
        """All rules by minimax regret; rules that were dropped come after those that were not.

        Args:
            known: for rules that a study knows, their mean regret there. Rules that are tied go by
                the average of the mean regrets here and there. Nobody has checked the other rules
                elsewhere, so they count as the median of those that are known.
        """
        typical = median(known.values()) if known else 0.0
        found = dict[str, RankedRule]()
        regrets = dict[int, dict[str, Regret]]()
        for text, regret, accuracy in zip(self.rules, self.regret, self.accuracy, strict=True):
            lost = regret[np.isfinite(regret)]
            found[text] = rule = RankedRule(
                aggregator=self.rules[text],
                regret_mean=float(lost.mean()),
                regret_worst=float(lost.max()),
                accuracy_mean=float(np.nanmean(accuracy)),
                accuracy_worst=float(np.nanmin(accuracy)),
                scenarios=len(lost),
            )
            there = known.get(text, typical) if known else rule.regret_mean
            mean = (rule.regret_mean + there) / 2
            regrets.setdefault(len(lost), {})[text] = Regret(rule.regret_worst, mean)
        most_tried_first = sorted(regrets, reverse=True)
        return [found[text] for tried in most_tried_first for text in by_regret(regrets[tried])]

    def hopeful(self, most: int, known: Mapping[str, float] | None = None) -> dict[str, Choice]:
        """The rules to try further: at ``most`` so many of those that were not dropped yet."""
        if not self.scenarios:
            return dict(self.rules)
        first = self.ranking(known)
        left = [rule for rule in first if rule.scenarios == len(self.scenarios)][:most]
        kept = {str(rule.aggregator) for rule in left}
        return {text: choice for text, choice in self.rules.items() if text in kept}
