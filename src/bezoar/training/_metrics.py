"""What is measured of models in training."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.data import Dataset
from bezoar.training._costs import LocalCosts, SoftmaxCosts
from bezoar.training._few_agents import BLOCK
from bezoar.training._run import Run
from bezoar.training._workers import Workers

#: Every metric, with what it is.
METRICS = {
    "accuracy": "test accuracy of the average model of the regular agents",
    "accuracy_mean": "test accuracy of the regular agents' own models, on average",
    "accuracy_worst": "test accuracy of the regular agents' own models, the lowest",
    "test_loss": "cross-entropy of the average model on the test set",
    "training_loss": "the regular agents' cost f at the average model",
    "consensus_error": "largest squared distance of a regular agent's model to the average",
    "gradient_norm": "squared norm of the gradient of f at the average model",
    "heterogeneity": "largest distance of a regular agent's gradient to that of f at the average",
    "disturbance": "largest distance of a poisoned agent's gradient to that of f at the average",
    "poison_share": "weight that regular agents gave to poisoned ones in the last exchange",
}

#: Metrics that test the average model, and those that test every agent's.
BY_AVERAGE = {"accuracy", "test_loss"}
BY_AGENT = {"accuracy_mean", "accuracy_worst"}

#: Metrics that need a test set.
BY_TEST = BY_AVERAGE | BY_AGENT

#: Metrics that need every agent's gradient at the average model.
BY_GRADIENT = {"training_loss", "gradient_norm", "heterogeneity", "disturbance"}

#: Models tested at a time.
TESTED = 32


class TestSet:
    """The test samples, sorted by class, for the accuracy of many models at once."""

    __test__ = False  # not a test case, whatever its name

    def __init__(self, dataset: Dataset, costs: SoftmaxCosts) -> None:
        model = costs.model
        order = dataset.test_labels.argsort(kind="stable")
        self._samples = model.design(dataset.test[order], costs.dtype).to(costs.device)
        ends = dataset.test_labels[order].searchsorted(range(model.classes + 1)).tolist()
        self._blocks = [
            (kind, first, min(first + BLOCK, ends[kind + 1]))
            for kind in range(model.classes)
            for first in range(ends[kind], ends[kind + 1], BLOCK)
        ]

    def evaluate(self, models: Tensor, want_loss: bool = False) -> tuple[Tensor, Tensor]:
        """Accuracy and mean cross-entropy of models.

        Args:
            models: ``[n, classes, width]``.
            want_loss: whether the second result is needed.

        Returns:
            ``[n]`` and ``[n]``, float64. Of equally likely classes the lowest is predicted.
        """
        rows = models.reshape(-1, models.shape[-1])
        right = torch.zeros(len(models), dtype=torch.float64, device=models.device)
        loss = torch.zeros_like(right)
        for kind, first, last in self._blocks:
            scores = (rows @ self._samples[first:last].T).view(len(models), -1, last - first)
            own = scores[:, kind]
            wins = torch.ones_like(own, dtype=torch.bool)
            if kind > 0:
                wins &= own > scores[:, :kind].amax(1)
            if kind + 1 < scores.shape[1]:
                wins &= own >= scores[:, kind + 1 :].amax(1)
            right += wins.sum(-1)
            if want_loss:
                loss += (scores.logsumexp(1) - own).sum(-1, dtype=torch.float64)
        return right / len(self._samples), loss / len(self._samples)


class Meter:
    """Takes the chosen metrics of all runs."""

    def __init__(
        self,
        runs: Sequence[Run],
        metrics: Sequence[str],
        dataset: Dataset | None,
        costs: LocalCosts,
        workers: Workers,
    ) -> None:
        self.metrics = tuple(metrics)
        self._costs = costs
        self._workers = workers
        self._test: TestSet | None = None
        if set(metrics) & BY_TEST:
            if dataset is None or not isinstance(costs, SoftmaxCosts):
                raise BezoarError(
                    f"metrics: {', '.join(sorted(BY_TEST))} need a dataset to test on"
                )
            self._test = TestSet(dataset, costs)
        poisoned = [run.network.poisoned_mask for run in runs]
        self._poisoned = torch.tensor([mask.tolist() for mask in poisoned], device=costs.device)
        self._regular = ~self._poisoned
        self._average = self._regular.double() / self._regular.sum(1, keepdim=True)

    @property
    def wants_share(self) -> bool:
        """Whether the last exchange must tell who was listened to."""
        return "poison_share" in self.metrics

    def measure(self, models: Tensor, share: Tensor | None) -> dict[str, Tensor]:
        """The metrics of every run.

        Args:
            models: ``[runs, agents, …]``.
            share: ``[runs, agents]`` the weight given to poisoned agents in the exchange that
                made ``models``; ``None`` before the first.

        Returns:
            ``[runs]`` float64 for each metric; NaN where it is not defined.
        """
        wanted = set(self.metrics)
        flat = self._of_regular(models)
        average = (self._average.to(models.dtype).unsqueeze(1) @ flat).squeeze(1)
        found: dict[str, Tensor] = {}
        if "consensus_error" in wanted:
            found["consensus_error"] = self._largest(
                (flat - average.unsqueeze(1)).square().sum(-1, dtype=torch.float64), self._regular
            )
        if "poison_share" in wanted:
            if share is None:
                share = torch.full_like(self._average, torch.nan)
            given = share.masked_fill(self._poisoned, 0) * self._average
            found["poison_share"] = given.sum(1)
        common = average.view(len(models), *models.shape[2:])
        if self._test is not None:
            found |= self._by_test(self._test, common, models)
        if wanted & BY_GRADIENT:
            found |= self._by_gradient(common, models)
        return {name: found[name] for name in self.metrics}

    def _by_test(self, test: TestSet, common: Tensor, models: Tensor) -> dict[str, Tensor]:
        """Test some models at a time: the average ones, and those of the regular agents."""
        wanted = set(self.metrics)
        averages = common.split(TESTED) if wanted & BY_AVERAGE else ()
        regular = self._regular.nonzero().split(TESTED) if wanted & BY_AGENT else ()

        def evaluate(piece: int) -> tuple[Tensor, Tensor]:
            if piece < len(averages):
                return test.evaluate(averages[piece], want_loss="test_loss" in wanted)
            runs, agents = regular[piece - len(averages)].T
            return test.evaluate(models[runs, agents])

        results = self._workers.map(evaluate, range(len(averages) + len(regular)))
        found: dict[str, Tensor] = {}
        if averages:
            accuracy, loss = zip(*results[: len(averages)], strict=True)
            found |= {"accuracy": torch.cat(accuracy), "test_loss": torch.cat(loss)}
        if regular:
            own = torch.full_like(self._average, torch.inf)
            own[self._regular] = torch.cat([accuracy for accuracy, _ in results[len(averages) :]])
            mean = own.masked_fill(self._poisoned, 0) * self._average
            found |= {"accuracy_mean": mean.sum(1), "accuracy_worst": own.amin(1)}
        return found

    def _by_gradient(self, common: Tensor, models: Tensor) -> dict[str, Tensor]:
        gradients, costs = self._costs.gradients_at(common, models)
        flat = gradients.flatten(2)
        whole = (self._average.to(flat.dtype).unsqueeze(1) @ self._of_regular(gradients)).squeeze(1)
        apart = (flat - whole.unsqueeze(1)).square().sum(-1, dtype=torch.float64).sqrt()
        return {
            "training_loss": (costs * self._average).masked_fill(self._poisoned, 0).sum(1),
            "gradient_norm": whole.square().sum(-1, dtype=torch.float64),
            "heterogeneity": self._largest(apart, self._regular),
            "disturbance": self._largest(apart, self._poisoned),
        }

    def _of_regular(self, values: Tensor) -> Tensor:
        """``[runs, agents, D]`` that may be weighed with zeros at the poisoned agents."""
        flat = values.flatten(2)
        if bool(torch.isfinite(flat.sum())):
            return flat
        return flat.masked_fill(self._poisoned.unsqueeze(-1), 0)

    @staticmethod
    def _largest(values: Tensor, among: Tensor) -> Tensor:
        """``[runs]`` the largest value among some agents; NaN where there are none."""
        largest = values.masked_fill(~among, -torch.inf).amax(1)
        return largest.masked_fill(~among.any(1), torch.nan)
