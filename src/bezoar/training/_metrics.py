"""What is measured of models in training: one object a metric, with all that is known of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar.attacks import LabelAttack
from bezoar.training._ranks import Everyone
from bezoar.training._run import State
from bezoar.training._task import Task

#: What a metric may need.
Need = Literal[
    "average test",  # of the regular agents' average model
    "patch test",  # of the same model, on samples with the patch of an attack
    "test of all",  # of the average over all agents
    "agent tests",  # of the regular agents' own models
    "test loss",  # of the average model, beside its accuracy
    "agent losses",  # of all agents' own models, poisoned ones included
    "gradients",  # of every agent, at the average model
    "shares",  # of the weights of an agent, what it gave to poisoned agents
]

#: What is measured of single agents on request, and where a measurement has it.
AGENT_METRICS = {"accuracy": "agents", "test_loss": "agent losses"}

#: What the names of these begin with among everything that was measured.
OF_AGENTS = "agents/"


@dataclass(frozen=True)
class Metric:
    """Something that is measured of a run.

    Attributes:
        name: what it is called in specs and files.
        title: what it is, as a phrase.
        axis: the label of its axis in a figure.
        compute: ``[runs]`` its values, float64; NaN where it is not defined.
        needs: what it is computed from, beside the models.
        column: the heading of its column in the table of a run; ``None`` if it has none there.
        more_is_better: whether more is better; ``None`` if neither more nor less is.
        logarithmic: whether its axis is logarithmic.
    """

    name: str
    title: str
    axis: str
    compute: Callable[["Measurement"], Tensor]
    needs: frozenset[Need] = frozenset()
    column: str | None = None
    more_is_better: bool | None = False
    logarithmic: bool = False


class Measurement:
    """The models of all runs after an iteration, and what metrics need to know of them.

    Everything is computed when it is first asked for, and once. ``regular [runs, W]`` is true at
    regular agents; ``shares [runs, agents]`` is the weight given to poisoned agents in the exchange
    that made the models, ``None`` before the first; ``needs`` is what will be asked for, so that it
    can be computed together. Agents may be trained elsewhere, so numbers of single agents are
    brought together (``[runs, W]``) and sums over agents are added up by ``everyone``.
    """

    def __init__(
        self,
        task: Task,
        regular: Tensor,
        state: State,
        shares: Tensor | None,
        needs: Collection[Need],
        everyone: Everyone,
    ) -> None:
        self.task, self.regular, self._needs = task, regular, needs
        self.state, self.models, self._everyone = state, state.models, everyone
        self.poisoned = ~regular
        self._weights = regular.double() / regular.sum(1, keepdim=True)
        here = (slice(None), everyone.here)
        self._regular_here, self._weights_here = regular[here], self._weights[here]
        self._shares = torch.full_like(self._weights_here, torch.nan) if shares is None else shares

    @cached_property
    def shares(self) -> Tensor:
        """``[runs, W]`` the weight that each agent gave to poisoned ones."""
        return self._everyone.each(self._shares)

    @cached_property
    def flat(self) -> Tensor:
        """``[runs, agents, D]`` the models; poisoned ones are zero if they are not finite."""
        return self._of_regular(self.models)

    @cached_property
    def average(self) -> Tensor:
        """``[runs, D]`` the average model of the regular agents."""
        return self._mean_of(self.flat)

    @property
    def common(self) -> Tensor:
        """``[runs, …]`` the average model as the task has models."""
        return self.average.view(len(self.models), *self.models.shape[2:])

    @cached_property
    def gradients(self) -> tuple[Tensor, Tensor]:
        """``[runs, agents, D]`` gradients at the average model, and ``[runs, W]`` costs.

        Labels are those of the iteration that comes next.
        """
        upcoming = self.state.iteration + 1
        gradients, costs = self.task.gradients_at(self.common, self.models, upcoming)
        return gradients.flatten(2), self._everyone.each(costs)

    @cached_property
    def gradient(self) -> Tensor:
        """``[runs, D]`` the gradient of ``f`` at the average model."""
        return self._mean_of(self._of_regular(self.gradients[0]))

    @cached_property
    def gradients_apart(self) -> Tensor:
        """``[runs, W]`` how far each agent's gradient is from that of ``f``."""
        apart = self.gradients[0] - self.gradient.unsqueeze(1)
        return self._everyone.each(apart.square().sum(-1, dtype=torch.float64).sqrt())

    @cached_property
    def tests(self) -> dict[str, Tensor]:
        """Tests of the ``"average"`` models ``[runs]``, their ``"loss"``, and of ``"agents"``.

        The accuracies of agents are ``[runs, W]``, NaN at poisoned ones unless the
        ``"agent losses"`` are asked for, which are of every agent. ``"all"`` has those of the
        average over all agents, poisoned ones included ``[runs]``; NaN where that is not finite.
        ``"patch"`` has how often the average models take test samples with the patch of the run's
        attack for its target ``[runs]``; NaN where attacks have no patch.
        """
        found: dict[str, Tensor] = {}
        task, state, everyone = self.task, self.state, range(len(self.models))
        if "average test" in self._needs:
            pooled = task.average_buffers(state, self._weights_here)
            loss = "test loss" in self._needs
            found["average"], found["loss"] = task.test(self.common, pooled, everyone, loss)
        if "patch test" in self._needs:
            found["patch"] = self._patch_tests()
        if "test of all" in self._needs:
            agents = self.regular.shape[1]
            alike = torch.full_like(self._weights_here, 1 / agents)
            common = self._everyone.total(self.models.sum(1)) / agents
            accuracy, _ = task.test(common, task.average_buffers(state, alike), everyone)
            diverged = ~common.flatten(1).isfinite().all(1)
            found["all"] = accuracy.masked_fill(diverged, torch.nan)
        if "agent tests" in self._needs:
            buffers = {name: state.tensors[name].flatten(0, 1) for name in task.buffers}
            losses = "agent losses" in self._needs
            regular = self._regular_here
            tested = (torch.ones_like(regular) if losses else regular).flatten()
            which = tested.nonzero().flatten().tolist()
            values = (self._weights_here.new_empty(0),) * 2  # where only poisoned agents are here
            if which:
                values = task.test(self.models.flatten(0, 1), buffers, which, losses)
            for name, value in zip(AGENT_METRICS.values(), values, strict=True):
                own = torch.full_like(self._weights_here, torch.nan)
                own.view(-1)[which] = value
                found[name] = self._everyone.each(own)
        return found

    def _patch_tests(self) -> Tensor:
        success = self._weights.new_full((len(self.models),), torch.nan)
        runs: dict[LabelAttack, list[int]] = {}
        for number, run in enumerate(self.task.runs):
            attack = run.attack
            if isinstance(attack, LabelAttack) and attack.triggers:
                runs.setdefault(attack, []).append(number)
        pooled = self.task.average_buffers(self.state, self._weights_here) if runs else {}
        for attack, which in runs.items():
            success[which], _ = self.task.test(self.common, pooled, which, trigger=attack)
        return success

    def mean(self, values: Tensor) -> Tensor:
        """``[runs]`` the mean of ``[runs, W]`` over the regular agents."""
        return (values.masked_fill(self.poisoned, 0) * self._weights).sum(1)

    @property
    def distances(self) -> Tensor:
        """``[runs, W]`` squared distances of the models to the average model."""
        return self._everyone.each(self.apart.square().sum(-1, dtype=torch.float64))

    @property
    def apart(self) -> Tensor:
        """``[runs, agents, D]`` what the models have beyond the average model."""
        if self.state.iteration == 0:  # all agents start at one model; their average is rounded
            return torch.zeros_like(self.flat)
        return self.flat - self.average.unsqueeze(1)

    @property
    def variance(self) -> Tensor:
        """``[runs, D]`` the variance of each coordinate over the regular agents."""
        return self._mean_of(self.apart.square_())

    def _mean_of(self, values: Tensor) -> Tensor:
        weights = self._weights_here.to(values.dtype).unsqueeze(1)
        return self._everyone.total((weights @ values).squeeze(1))

    def _of_regular(self, values: Tensor) -> Tensor:
        """``[runs, agents, D]`` that may be multiplied with zeros at the poisoned agents."""
        flat = values.flatten(2)
        if bool(torch.isfinite(flat.sum())):
            return flat
        return flat.masked_fill(~self._regular_here.unsqueeze(-1), 0)


def largest(values: Tensor, among: Tensor) -> Tensor:
    """``[runs]`` the largest value among some agents; NaN where there are none."""
    found = values.masked_fill(~among, -torch.inf).amax(1)
    return found.masked_fill(~among.any(1), torch.nan)


#: In the order in which they are shown: what the agents themselves hold comes before their average
#: model, which nobody holds.
_ALL = (
    Metric(
        "accuracy_mean",
        "test accuracy of the regular agents' own models, on average",
        axis="test accuracy (mean over agents)",
        column="agents",
        more_is_better=True,
        needs=frozenset({"agent tests"}),
        compute=lambda found: found.mean(found.tests["agents"]),
    ),
    Metric(
        "accuracy_worst",
        "test accuracy of the regular agents' own models, the lowest",
        axis="test accuracy (worst agent)",
        column="worst",
        more_is_better=True,
        needs=frozenset({"agent tests"}),
        compute=lambda found: -largest(-found.tests["agents"], found.regular),
    ),
    Metric(
        "accuracy",
        "test accuracy of the average model of the regular agents",
        axis="test accuracy (average model)",
        column="average",
        more_is_better=True,
        needs=frozenset({"average test"}),
        compute=lambda found: found.tests["average"],
    ),
    Metric(
        "accuracy_all",
        "test accuracy of the average model of all agents, poisoned ones included",
        axis="test accuracy (average of all)",
        more_is_better=True,
        needs=frozenset({"test of all"}),
        compute=lambda found: found.tests["all"],
    ),
    Metric(
        "backdoor_success",
        "how often the average model takes test samples with a backdoor's patch for its target",
        axis="success of the backdoor",
        needs=frozenset({"patch test"}),
        compute=lambda found: found.tests["patch"],
    ),
    Metric(
        "test_loss",
        "cross-entropy of the average model on the test set",
        axis="test loss (average model)",
        needs=frozenset({"average test", "test loss"}),
        compute=lambda found: found.tests["loss"],
    ),
    Metric(
        "training_loss",
        "the regular agents' cost f at the average model",
        axis="training loss f",
        column="loss f",
        needs=frozenset({"gradients"}),
        compute=lambda found: found.mean(found.gradients[1]),
    ),
    Metric(
        "consensus_error",
        "largest squared distance of a regular agent's model to the average",
        axis="consensus error",
        column="consensus",
        logarithmic=True,
        compute=lambda found: largest(found.distances, found.regular),
    ),
    Metric(
        "variance_norm",
        "norm of the coordinate-wise variance of the regular agents' models",
        axis="norm of the variance",
        logarithmic=True,
        compute=lambda found: found.variance.double().norm(dim=-1),
    ),
    Metric(
        "gradient_norm",
        "squared norm of the gradient of f at the average model",
        axis="squared gradient norm",
        logarithmic=True,
        needs=frozenset({"gradients"}),
        compute=lambda found: found.gradient.square().sum(-1, dtype=torch.float64),
    ),
    Metric(
        "heterogeneity",
        "largest distance of a regular agent's gradient to that of f at the average",
        axis="heterogeneity ξ",
        column="ξ",
        more_is_better=None,
        logarithmic=True,
        needs=frozenset({"gradients"}),
        compute=lambda found: largest(found.gradients_apart, found.regular),
    ),
    Metric(
        "disturbance",
        "largest distance of a poisoned agent's gradient to that of f at the average",
        axis="disturbance A",
        column="A",
        more_is_better=None,
        logarithmic=True,
        needs=frozenset({"gradients"}),
        compute=lambda found: largest(found.gradients_apart, found.poisoned),
    ),
    Metric(
        "poison_share",
        "weight that regular agents gave to poisoned ones in the last exchange",
        axis="weight on poisoned agents",
        column="poison",
        needs=frozenset({"shares"}),
        compute=lambda found: found.mean(found.shares),
    ),
)

#: Every metric by its name.
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


class Meter:
    """Takes the chosen metrics of all runs, and those of single agents if asked to."""

    def __init__(
        self, task: Task, metrics: Sequence[str], agent_metrics: bool, everyone: Everyone
    ) -> None:
        self.metrics = tuple(METRICS[name] for name in metrics)
        self.of_agents = tuple(AGENT_METRICS) if agent_metrics else ()
        self.needs = frozenset(need for metric in self.metrics for need in metric.needs)
        if agent_metrics:
            self.needs |= {"agent tests", "agent losses"}
        tests: frozenset[Need] = frozenset(
            {"average test", "patch test", "test of all", "agent tests"}
        )
        if not task.tests and self.needs & tests:
            tested = [metric.name for metric in self.metrics if metric.needs & tests]
            tested += ["agent_metrics"] if agent_metrics else []
            allowed = [metric.name for metric in _ALL if not metric.needs & tests]
            raise BezoarError(
                f"metrics: {', '.join(tested)} cannot be measured on this task, which has no test "
                f"set; allowed: {', '.join(allowed)}"
            )
        self._task, self._everyone = task, everyone
        who = list(everyone.agents)
        masks = np.stack([run.network.poisoned_mask[who] for run in task.runs])
        self._regular = torch.from_numpy(~masks).to(task.device)

    def measure(self, state: State, shares: Tensor | None) -> dict[str, Tensor]:
        """``[runs]`` float64 for each metric, ``[runs, agents]`` for those of single agents."""
        found = Measurement(self._task, self._regular, state, shares, self.needs, self._everyone)
        values = {metric.name: metric.compute(found) for metric in self.metrics}
        of_agents = {OF_AGENTS + name: found.tests[AGENT_METRICS[name]] for name in self.of_agents}
        return values | of_agents
