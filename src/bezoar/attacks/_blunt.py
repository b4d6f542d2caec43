"""Simple attacks: copies, noise, zeros, and values that are not finite."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._options import Count
from bezoar._seeds import Purpose, generator
from bezoar.attacks._attack import Attack, Knowledge, SeenMessages
from bezoar.networks import Network


@dataclass(frozen=True)
class Mimic(Attack):
    """`Mimic <https://arxiv.org/abs/2006.09365>`_: all poisoned agents copy one regular agent.

    Nothing that they send stands out, but one agent counts for many.

    Args:
        agent: whom they copy; by default the regular agent with the lowest number.
    """

    agent: Count | None = None

    name: ClassVar[str] = "mimic"
    knows: ClassVar[Knowledge] = "everything"
    broadcast: ClassVar[bool] = True

    def check_network(self, network: Network) -> None:
        if self.agent not in (None, *network.regular):
            raise BezoarError(
                f"attack mimic: agent: expected a regular agent of the {network.name} network, "
                f"found {self.agent}; poisoned are {list(network.poisoned)} of {network.agents}"
            )

    def on_messages(self, seen: SeenMessages) -> Tensor:
        agent = seen.network.regular[0] if self.agent is None else self.agent
        copied = seen.all_messages()[:, agent : agent + 1]
        return copied.expand(-1, len(seen.senders), -1)


@dataclass(frozen=True)
class Gaussian(Attack):
    """Normal noise on every coordinate of the own message, drawn anew in every iteration.

    Args:
        deviation: the standard deviation of the noise.
        broadcast: whether all neighbours are sent the same.
    """

    deviation: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    broadcast: bool = True

    name: ClassVar[str] = "gaussian"

    def on_messages(self, seen: SeenMessages) -> Tensor:
        honest, senders = seen.own_messages(), seen.senders.cpu().numpy()
        noise = np.empty(honest.shape, dtype=np.float32)
        for of_run, seed in zip(noise, seen.seeds, strict=True):
            for sender, sends in zip(*np.unique(senders, return_counts=True), strict=True):
                rng = generator(seed, Purpose.MESSAGES, int(sender), seen.iteration)
                shape = (sends, honest.shape[-1])
                of_run[senders == sender] = rng.standard_normal(shape, dtype=np.float32)
        return honest + self.deviation * torch.from_numpy(noise).to(honest)


@dataclass(frozen=True)
class Zero(Attack):
    """Send zeros."""

    name: ClassVar[str] = "zero"
    broadcast: ClassVar[bool] = True

    def on_messages(self, seen: SeenMessages) -> Tensor:
        return torch.zeros_like(seen.own_messages())


@dataclass(frozen=True)
class NonFinite(Attack):
    """Send what is not a finite number, in every coordinate or in the first alone.

    Args:
        value: ``"nan"`` or ``"inf"``.
        everywhere: whether it is sent in every coordinate.
    """

    value: Literal["nan", "inf"] = "nan"
    everywhere: bool = True

    name: ClassVar[str] = "non_finite"
    broadcast: ClassVar[bool] = True

    def on_messages(self, seen: SeenMessages) -> Tensor:
        sent = seen.own_messages().clone()
        sent[..., slice(None) if self.everywhere else slice(1)] = float(self.value)
        return sent
