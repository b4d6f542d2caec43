"""What a rule is: any rule, rules by weights, rules by coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field as Option
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from torch import Tensor

from bezoar._arrays import Ints
from bezoar._errors import BezoarError
from bezoar._options import Count, Part
from bezoar._workspace import workspace
from bezoar.aggregators._neighbourhood import Neighbourhood, OutputLayer
from bezoar.networks import Network

#: What a rule may look at beside the messages of this exchange: the agent's own last output, and
#: its model before the local update, which in Algorithm 1 are the same; a model of zeros; and what
#: its auxiliary rule makes of the messages.
REMEMBERED = ("previous_output", "model_before_step", "origin", "auxiliary")

#: What poisoned agents may do, in words.
THREATS = {
    "labels": "train with wrong labels and follow the protocol",
    "messages": "send any numbers",
    "non_finite": "send what is not finite",
}

#: How an estimate begins that is lower where the rule cannot bear so many.
UP_TO = "up_to_"


def _read_estimate(found: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Read an estimate, or list what is allowed. Old specs call the exact number true."""
    try:
        return read("exact" if found == "true" or found is True else found)
    except ValidationError:
        raise ValueError(
            f"expected 'exact' or 'max' or an integer from 0 or one as in '{UP_TO}2', "
            f"found {found!r}"
        ) from None


#: An agent's estimate of its poisoned inputs: the exact number; the largest one in the network; one
#: number for all; or one number for all, lower where the rule cannot bear so many.
Estimate = Annotated[
    Literal["exact", "max"] | Count | Annotated[str, Field(pattern=f"^{UP_TO}(0|[1-9][0-9]*)$")],
    WrapValidator(_read_estimate),
]


class Aggregator(Part):
    """A rule by which every agent turns the models it has into its next model.

    A rule is a frozen dataclass whose fields are its options. Two options have a meaning of their
    own: ``mixing`` names the mixing matrix the rule works with, ``estimate`` the estimate of
    poisoned inputs.

    Attributes:
        label: the paper's name, for legends.
        colour: the colour of its curves, such as ``#0072B2``; by default it follows from the name.
        marker: a matplotlib marker for its curves; by default it follows from the name.
        before: what is done to the inputs before, in a composed rule such as ``nnm+krum``.
        keeps: what the rule must keep when it drops inputs, for the error where it cannot.
        withstands: which of :data:`THREATS` leave a regular agent's output within bounds, with the
            rule's default options and an exact estimate; by default all if it has a breakdown
            point, else nobody has said.
        breakdown: the share of poisoned inputs below which that holds of messages, with many
            inputs; 0 where a fixed number of them is enough to break the rule.
        majority_dominant: whether it returns what all regular inputs say, if they are a strict
            majority and say the same, wherever the rule is possible.
    """

    label: ClassVar[str] = ""
    colour: ClassVar[str] = ""
    marker: ClassVar[str] = ""
    before: ClassVar[tuple[Any, ...]] = ()
    keeps: ClassVar[str] = "must keep at least one"
    withstands: ClassVar[tuple[str, ...]] = ()
    breakdown: ClassVar[float | None] = None
    majority_dominant: ClassVar[bool | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "withstands" not in vars(cls) and cls.breakdown:
            cls.withstands = tuple(THREATS)

    def __call__(self, messages: ArrayLike | Tensor, network: Network) -> Tensor:
        """Aggregate at every agent.

        Args:
            messages: ``[..., W, D]`` what each agent sends, as a tensor, an array or lists; leading
                dimensions are runs.
            network: who hears whom.

        Returns:
            ``[..., W, D]`` each agent's next model.
        """
        from bezoar.exchange import exchange_once

        return exchange_once(self, messages, network)

    def at(
        self,
        inputs: ArrayLike | Tensor,
        mixing: ArrayLike | Tensor | None = None,
        estimate: int | None = None,
        *,
        senders: Sequence[int] | None = None,
        remembered: Mapping[str, ArrayLike | Tensor] | None = None,
        losses: ArrayLike | Tensor | None = None,
        iteration: int = 0,
        progress: float = 0.0,
    ) -> Tensor:
        """Aggregate at one agent, from the messages it received.

        Args:
            inputs: ``[m, D]`` the own message first, then the neighbours'.
            mixing: ``[m]`` the agent's row of the mixing matrix, in the order of the inputs. Rules
                with the option ``mixing`` need it.
            estimate: how many of the inputs are taken for poisoned. Rules whose option
                ``estimate`` is ``"exact"`` or ``"max"`` need it.
            senders: the number of the agent behind each input, by which ties are broken; by
                default the inputs' order.
            remembered: ``[D]`` for each name in :meth:`remembers`, but the origin and what an
                auxiliary rule makes.
            losses: ``[m]`` the loss of each input on samples of the agent's own, for rules that
                judge by it; see :meth:`samples_judged`.
            iteration: which iteration it is, counted from 1.
            progress: which share of all iterations is done.

        Returns:
            ``[D]`` the agent's next model: what calling the rule on the whole network gives there.
        """
        from bezoar.exchange import aggregate_at

        return aggregate_at(
            *(self, inputs, mixing, estimate, senders, remembered or {}, iteration, progress),
            losses=losses,
        )

    def wiring(self) -> tuple[str, str | int]:
        """The mixing matrix and the estimate of poisoned inputs that the rule works with."""
        return getattr(self, "mixing", "metropolis"), getattr(self, "estimate", "exact")

    def uses_estimate(self) -> bool:
        """Whether the estimate of poisoned inputs matters."""
        return hasattr(self, "estimate")

    def remembers(self) -> tuple[str, ...]:
        """Which of :data:`REMEMBERED` the rule looks at; each is a slot after the inputs."""
        return ()

    def samples_judged(self) -> int:
        """On how many of its own samples an agent takes the loss of each input; often none."""
        return 0

    def sums_updates(self) -> bool:
        """Whether the inner products it reads are those of what inputs changed in all iterations.

        Only their output layers count.
        """
        return False

    def auxiliary(self) -> "Aggregator | None":
        """Another rule whose output from the same inputs this one looks at."""
        return None

    def output_layer(self) -> OutputLayer | None:
        """Where the output layer lies in a message, if the rule was told."""
        return None

    def inputs_needed(self, estimate: Any) -> Any:
        """The least number of inputs with which the rule works, for an estimate or an array.

        It must not fall as the estimate rises.
        """
        return 1 + 0 * estimate

    def estimates(self, network: Network) -> Ints:
        """``[W]`` how many of its inputs each agent takes for poisoned, ``Q_w``.

        Where links are silent, the exact number counts those that are heard. Any other is an upper
        bound, which silence does not lower. Neither is then more than the rule can bear.
        """
        option, whole = self.wiring()[1], network.whole
        if option == "exact":
            expected = network.poisoned_inputs
        elif option == "max":
            expected = np.full(network.agents, whole.poisoned_inputs.max())
        else:
            expected = self.assumed(whole.degrees + 1)
        if network is whole:
            return expected
        return np.minimum(expected, self.bearable(network.degrees + 1, int(expected.max())))

    def assumed(self, inputs: Ints) -> Ints:
        """``[...]`` what a number in the option means for agents with ``[...]`` inputs.

        ``up_to_N`` means as many as the rule can bear, and no more than ``N``.
        """
        option = self.wiring()[1]
        if isinstance(option, int):
            return np.full(inputs.shape, option)
        number = min(int(option.removeprefix(UP_TO)), int(inputs.max()))
        return np.minimum(self.bearable(inputs, number), inputs - 1)

    def bearable(self, inputs: Ints, most: int) -> Ints:
        """``[...]`` the largest estimate that the rule can bear with ``[...]`` inputs, or 0."""
        needed = self.inputs_needed(np.arange(most + 1))
        return np.maximum(np.searchsorted(needed, inputs, side="right") - 1, 0)

    def check(self, network: Network) -> None:
        """Refuse, naming the agent, a network on which the rule is impossible at some agent."""
        estimate = self.estimates(network)
        inputs = network.degrees + 1
        lacking = np.flatnonzero(inputs < self.inputs_needed(estimate))
        if len(lacking):
            agent = lacking[0]
            raise BezoarError(
                f"aggregator {self.name}: impossible at agent {network.names[agent]} of the "
                f"{network.name} network, which has {inputs[agent]} inputs and takes "
                f"{estimate[agent]} of them for poisoned, but the rule {self.keeps}; lower "
                "'estimate', or choose another rule or network"
            )

    def __str__(self) -> str:
        """The label, followed by the options that are not at their defaults."""
        options: tuple[Option[Any], ...] = fields(self) if is_dataclass(self) else ()
        changed = [
            f"{field.name}={getattr(self, field.name)}"
            for field in options
            if getattr(self, field.name) != field.default
        ]
        return " ".join([self.label or self.name, ", ".join(changed)]).strip()


@dataclass(frozen=True)
class Estimating(Aggregator):
    """A rule that takes some of its inputs for poisoned.

    Args:
        estimate: the number of poisoned inputs ``Q_w``: ``"exact"``, ``"max"``, a number for all,
            or such a number as ``"up_to_2"``, lower where the rule cannot bear so many.
    """

    estimate: Estimate = "exact"

    def inputs_needed(self, estimate: Any) -> Any:
        return estimate + 1


class WeightedAggregator(Aggregator, ABC):
    """A rule that returns a combination of its inputs.

    Attributes:
        reads: what the weights depend on: ``"gram"``, the inner products of the inputs;
            ``"output_layer"``, those of their output layers; or ``"nothing"`` but the network.
    """

    reads: ClassVar[str] = "gram"

    @abstractmethod
    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[..., m]`` the weight of each slot; they sum to one and are zero at padding."""


class EstimatingAggregator(Estimating, WeightedAggregator):
    """A rule by weights that takes some of its inputs for poisoned."""


class CoordinateAggregator(Aggregator, ABC):
    """A rule that makes every coordinate of its output of the same coordinate of the inputs.

    If it has the option ``keep_own`` and that is set, the neighbours' values alone are sorted, and
    the own value comes before them. NaN counts as plus infinity.

    Attributes:
        reads: what it depends on: ``"values"`` alone; or ``"gram"``, the inner products of the
            inputs, by which it may :meth:`choose` whose values are used.
        sorts: whether values come in ascending order; otherwise they come in the order of the
            slots, the own one first.
    """

    reads: ClassVar[str] = "values"
    sorts: ClassVar[bool] = True

    def keeps_own(self) -> bool:
        """Whether the own value is kept unsorted, before the others."""
        return bool(getattr(self, "keep_own", False))

    def outermost(self, largest_estimate: int) -> int | None:
        """How many values at either end need sorting; between them weights must be uniform.

        ``None`` when every rank may matter.
        """
        return None

    def values_used(self, inputs: int, estimate: int) -> int:
        """How many of the inputs are used."""
        return inputs

    def choose(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[..., m]`` whether an input is used: at every agent as many as are to be used."""
        return neighbourhood.mask.expand(neighbourhood.finite.shape)

    @abstractmethod
    def combine(
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: int
    ) -> Tensor:
        """The output, from the values of the inputs that are used.

        Args:
            values: tensors of one shape, one for each of these inputs.
            estimate: the estimated number of poisoned inputs.
            dtype: the type in which values are added up.
            iteration: which iteration it is, counted from 1; 0 outside training.

        Returns:
            A tensor like each of the values; valid until the thread combines again.
        """

    @abstractmethod
    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        """The lowest and the highest of the values that have a part in the output.

        Whatever lies between these two was listened to.
        """


class RankAggregator(CoordinateAggregator, ABC):
    """A rule that sorts each coordinate of the inputs and averages by rank.

    With ``keep_own`` the neighbours' values have ranks from 1, and the own value has rank 0.
    """

    @abstractmethod
    def rank_weights(self, size: int, estimate: Tensor) -> Tensor:
        """The weight of each rank.

        Args:
            size: the number of inputs.
            estimate: ``[...]`` the estimated number of poisoned inputs.

        Returns:
            ``[..., size]`` probability vectors; those of the sorted values are the same from either
            end.
        """

    def ranks(self, size: int, estimate: int) -> Sequence[float]:
        """The weight of each rank for one number of inputs and one estimate."""
        return _known_rank_weights(self, size, estimate)

    def combine(
        self, values: Sequence[Tensor], estimate: int, dtype: torch.dtype, iteration: int
    ) -> Tensor:
        ranks = self.ranks(len(values), estimate)
        return weighted_sum([each for each in zip(values, ranks, strict=True) if each[1]], dtype)

    def extent(self, values: Sequence[Tensor], estimate: int) -> tuple[Tensor, Tensor]:
        first = int(self.keeps_own())
        ranks = self.ranks(len(values), estimate)[first:]
        used = [value for value, weight in zip(values[first:], ranks, strict=True) if weight]
        if not used:  # but the own one
            nothing = torch.full_like(values[0], torch.inf)
            return nothing, -nothing
        within = torch.stack(used)
        return within.amin(0), within.amax(0)


@cache
def _known_rank_weights(rule: RankAggregator, size: int, estimate: int) -> Sequence[float]:
    return list(rule.rank_weights(size, torch.tensor(estimate)).tolist())


def weighted_sum(values: Sequence[tuple[Tensor, float]], dtype: torch.dtype) -> Tensor:
    """The sum of values, each with its weight, in ``dtype``; valid until the thread asks again.

    Where ``dtype`` is wider than the values' type, sums are exact, and means are rounded once.
    """
    [(first, weight), *others] = values
    total = workspace("sum", tuple(first.shape), dtype, first.device).copy_(first)
    if dtype != first.dtype and all(other == weight for _, other in others):
        for value, _ in others:
            total += value
        return total.div_(len(values))
    if weight != 1:
        total *= weight
    for value, weight in others:
        total.add_(value, alpha=weight)
    return total


def one_hot(like: Tensor, slot: int) -> Tensor:
    """``[..., m]`` float64 in the shape of ``like``: one at ``slot``, zero elsewhere."""
    weights = torch.zeros(like.shape, dtype=torch.float64, device=like.device)
    weights[..., slot] = 1
    return weights


def moved_towards(moves: Tensor) -> Tensor:
    """``[..., m]`` the weights of ``y_w + Σ_v s_v (y_v − y_w)``, with the moves ``s [..., m]``."""
    return one_hot(moves, 0) * (1 - moves.sum(-1, keepdim=True)) + moves
