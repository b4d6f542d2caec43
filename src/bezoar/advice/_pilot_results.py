"""What pilots found: how much every rule lost in every scenario, and the ranking that follows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bezoar._arrays import Floats
from bezoar.advice._candidates import named
from bezoar.advice._scenarios import Scenario
from bezoar.experiments import Choice

#: Worst regrets this close to the least are ties, and the mean regret decides: pilots of other
#: seeds differ by about as much.
TIE = 0.02

#: A rule whose worst regret exceeds the least by more than this is not tried any further.
HOPELESS = 0.15

#: So many rules are always tried further.
LEAST_RULES = 4


@dataclass(frozen=True)
class RankedRule:
    """How a rule did in the scenarios that it was tried in.

    Attributes:
        aggregator: the rule, with its options.
        regret_mean: how much mean agent accuracy it lost against the best rule of a scenario, on
            average.
        regret_worst: the same in the scenario where it lost most.
        accuracy_mean: the regular agents' mean accuracy, on average.
        accuracy_worst: the same in the scenario where it was lowest.
        scenarios: how many scenarios there were. A rule that falls far behind is dropped.
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

    def ranking(self) -> list[RankedRule]:
        """All rules, the best first: by worst regret; ties are broken by mean regret.

        Rules that were dropped come after those that were not.
        """
        left = [
            RankedRule(
                aggregator=choice,
                regret_mean=float(np.nanmean(regret)),
                regret_worst=float(np.nanmax(regret)),
                accuracy_mean=float(np.nanmean(accuracy)),
                accuracy_worst=float(np.nanmin(accuracy)),
                scenarios=int(np.isfinite(accuracy).sum()),
            )
            for choice, regret, accuracy in zip(
                self.rules.values(), self.regret, self.accuracy, strict=True
            )
        ]
        ranked = []
        while left:
            most = max(rule.scenarios for rule in left)
            kept = [rule for rule in left if rule.scenarios == most]
            least = min(rule.regret_worst for rule in kept)
            tied = [rule for rule in kept if rule.regret_worst <= least + TIE]
            ranked.append(min(tied, key=lambda rule: (rule.regret_mean, rule.regret_worst)))
            left.remove(ranked[-1])
        return ranked

    def hopeful(self, most: int, always: Collection[str] = ()) -> dict[str, Choice]:
        """The rules that may still turn out to be the best, at ``most`` so many.

        Those that are to be tried ``always`` are kept, and count.
        """
        if not self.scenarios:
            return dict(self.rules)
        # Rules that were dropped before are not in the scenarios since.
        worst = np.where(np.isnan(self.accuracy[:, -1]), np.inf, np.nanmax(self.regret, axis=1))
        limit = max(worst.min() + HOPELESS, np.sort(worst)[:LEAST_RULES][-1])
        by_worst = sorted(zip(worst.tolist(), self.rules, strict=True), key=lambda pair: pair[0])
        kept = [text for text in self.rules if text in always]
        kept += [text for regret, text in by_worst if regret <= limit and text not in kept]
        kept = kept[: max(most, LEAST_RULES)]
        return {text: choice for text, choice in self.rules.items() if text in kept}
