"""What an iteration makes of the models: Algorithm 1, and its relatives in the field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._options import Part
from bezoar.training._run import Run, State

if TYPE_CHECKING:
    from bezoar.training._engine import Engine

#: What was sent, and the tensors of the state that are new.
Stepped = tuple[Tensor, dict[str, Tensor]]


class Algorithm(Part, ABC):
    """What an iteration makes of the models; a frozen dataclass whose fields are its options.

    ``Agg`` is every agent's rule, applied to what it receives. ``γ g`` stands for what the
    optimiser, the step size and the weight decay make of a gradient ``g``.

    Attributes:
        remembers: the names of the tensors like the models that it keeps in the state.
        alone: whether an agent in a process of its own can follow it: one exchange of models an
            iteration.
        sends_updates: whether a message is the model before the iteration plus what the iteration
            changed.
    """

    remembers: ClassVar[tuple[str, ...]] = ()
    alone: ClassVar[bool] = False
    sends_updates: ClassVar[bool] = False

    def check(self, run: Run, local_steps: int, rounds: int) -> None:
        """Refuse what the algorithm cannot be combined with."""
        if run.aggregator.sums_updates() and (rounds > 1 or not self.sends_updates):
            raise BezoarError(
                f"aggregator {run.aggregator.name}: it sums up what neighbours change in one "
                "exchange of an iteration; allowed: the algorithm adapt_then_combine with one round"
            )

    def start(self, engine: Engine, models: Tensor) -> Mapping[str, Tensor]:
        """What it keeps in the state, before the first iteration."""
        return {}

    @abstractmethod
    def step(self, engine: Engine, state: State, k: int) -> Stepped:
        """One iteration. The memory of the state is used again."""


@dataclass(frozen=True)
class AdaptThenCombine(Algorithm):
    """Algorithm 1: ``x⁺ = Agg(x − γ g(x))``."""

    name: ClassVar[str] = "adapt_then_combine"
    alone: ClassVar[bool] = True
    sends_updates: ClassVar[bool] = True

    def step(self, engine: Engine, state: State, k: int) -> Stepped:
        messages = engine.local_steps(state, k)
        models = engine.aggregate(state, messages, state.models, k)
        return messages, {"models": models}


@dataclass(frozen=True)
class CombineThenAdapt(Algorithm):
    """Combine, then adapt: ``x⁺ = Agg(x) − γ g(x)``.

    With several local steps, their sum is subtracted. Models are sent as they are after the local
    update of the iteration before, so "the model before the local update", which some attacks and
    rules look at, is that iteration's ``Agg(x)``.
    """

    name: ClassVar[str] = "combine_then_adapt"
    remembers: ClassVar[tuple[str, ...]] = ("combined",)
    alone: ClassVar[bool] = True

    def start(self, engine: Engine, models: Tensor) -> Mapping[str, Tensor]:
        return {"combined": models.clone()}

    def step(self, engine: Engine, state: State, k: int) -> Stepped:
        messages = state.models
        updated = engine.local_steps(state, k)
        combined = engine.aggregate(state, messages, state.tensors["combined"], k)
        models = updated.sub_(messages).add_(combined)
        return messages, {"models": models, "combined": combined}


@dataclass(frozen=True)
class GradientTracking(Algorithm):
    """Gradient tracking: ``x⁺ = Agg(x − γ t)``, ``t⁺ = Agg(t) + g⁺ − g``; at first ``t = g``.

    Trackers ``t`` are sent as models are. Poisoned agents lie in both; in the place of "the model
    before the local update" a tracker has ``Agg(t)`` before the new gradient. Weight decay is added
    to ``t``, and momentum is that of ``t``. What is told of who listened to whom is about models.
    """

    name: ClassVar[str] = "gradient_tracking"
    remembers: ClassVar[tuple[str, ...]] = ("tracked", "gradients")

    def check(self, run: Run, local_steps: int, rounds: int) -> None:
        super().check(run, local_steps, rounds)
        if local_steps > 1:
            raise BezoarError(
                f"local_steps: gradient tracking has one gradient an iteration, found "
                f"{local_steps} local steps; allowed: 1"
            )

    def start(self, engine: Engine, models: Tensor) -> Mapping[str, Tensor]:
        return {name: torch.zeros_like(models) for name in self.remembers}

    def step(self, engine: Engine, state: State, k: int) -> Stepped:
        tracked, before = (state.tensors[name] for name in self.remembers)
        gradients = engine.task.gradients(state, k, engine.memory(state))
        trackers = before.neg_().add_(gradients).add_(tracked)
        tracked = engine.aggregate(state, trackers, tracked, k)
        messages = engine.local_updates(state, trackers, k)
        models = engine.aggregate(state, messages, state.models, k)
        return messages, {"models": models, "tracked": tracked, "gradients": gradients}
