"""What a rule is: any rule, rules by weights, rules by coordinates."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field as Option
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from torch import Tensor

from bezoar._arrays import Ints
from bezoar._errors import BezoarError
from bezoar._options import Count, Part
from bezoar.aggregators._neighbourhood import Neighbourhood, OutputLayer
from bezoar.networks import Network

#: What a rule may look at beside the messages of this exchange: the agent's own last output, and
#: its model before the local update, which in Algorithm 1 are the same; and a model of zeros.
REMEMBERED = ("previous_output", "model_before_step", "origin")

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


#: An option that multiplies what may be zero, so it must not be infinite.
FinitePositive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Aggregator(Part):
    """A rule by which every agent turns the models it has into its next model.

    A rule is a frozen dataclass whose fields are its options. Three options have a meaning of their
    own: ``mixing`` names the mixing matrix the rule works with, ``estimate`` the estimate of
    poisoned inputs, and ``head`` gives the classes and features of the output layer.

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
            remembered: ``[D]`` for each name in :meth:`remembers`, but the origin.
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
        """The rule to whose output this one reads the distances of its inputs, if it does.

        It is a rule by coordinates, without anything before it, and goes by values alone.
        """
        return None

    def output_layer(self) -> OutputLayer | None:
        """Where the output layer lies in a message, if the rule was told."""
        head = getattr(self, "head", None)
        return None if head is None else OutputLayer(*head)

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
            ``"output_layer"``, those of their output layers; ``"distances"``, those of the inputs
            to the output of the auxiliary rule; or ``"nothing"`` but the network.
    """

    reads: ClassVar[str] = "gram"

    @abstractmethod
    def weights(self, neighbourhood: Neighbourhood) -> Tensor:
        """``[..., m]`` the weight of each slot; they sum to one and are zero at padding.

        A rule that gives nothing to what it remembers may leave these slots out.
        """


class EstimatingAggregator(Estimating, WeightedAggregator):
    """A rule by weights that takes some of its inputs for poisoned."""


def one_hot(like: Tensor, slot: int) -> Tensor:
    """``[..., m]`` float64 in the shape of ``like``: one at ``slot``, zero elsewhere."""
    weights = torch.zeros(like.shape, dtype=torch.float64, device=like.device)
    weights[..., slot] = 1
    return weights


def moved_towards(moves: Tensor) -> Tensor:
    """``[..., m]`` the weights of ``y_w + Σ_v s_v (y_v − y_w)``, with the moves ``s [..., m]``."""
    return one_hot(moves, 0) * (1 - moves.sum(-1, keepdim=True)) + moves
