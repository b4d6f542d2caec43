"""Messages that are made of the regular messages that their receiver hears."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bezoar.attacks._attack import Attack, Knowledge, SeenMessages


@dataclass(frozen=True)
class RegularInputs:
    """What the receiver of one message hears beside it.

    Attributes:
        messages: ``[runs, k, D]`` the regular messages among its inputs, its own included.
        models: ``[runs, k, D]`` their senders' models before the local update.
        inputs: how many inputs it has, ``n``.
        poisoned: how many of them are poisoned, ``P``.
    """

    messages: Tensor
    models: Tensor
    inputs: int
    poisoned: int


@dataclass(frozen=True)
class AttackOnInputs(Attack):
    """An attack whose messages follow from the regular inputs of their receiver.

    Args:
        broadcast: whether all neighbours are sent the same, made of the messages of all regular
            agents.
    """

    broadcast: bool = False

    knows: ClassVar[Knowledge] = "everything"

    @abstractmethod
    def message(self, heard: RegularInputs) -> Tensor:
        """``[runs, D]`` what is sent to somebody who hears this."""

    def on_messages(self, seen: SeenMessages) -> Tensor:
        network, messages = seen.network, seen.all_messages()

        def heard_by(receiver: int | None) -> RegularInputs:
            among = range(network.agents)
            inputs = among if receiver is None else network.closed_neighbourhood(receiver)
            regular = [agent for agent in inputs if not network.poisoned_mask[agent]]
            poisoned = len(inputs) - len(regular)
            # Only a poisoned agent can hear no regular one; what it is sent does not matter.
            some = regular or list(network.regular)
            return RegularInputs(messages[:, some], seen.models[:, some], len(inputs), poisoned)

        if seen.receivers is None:
            one = self.message(heard_by(None))
            return one.unsqueeze(1).expand(-1, len(seen.senders), -1)
        receivers = seen.receivers.tolist()
        found = {receiver: self.message(heard_by(receiver)) for receiver in set(receivers)}
        return torch.stack([found[receiver] for receiver in receivers], dim=1)


def mean_and_deviation(messages: Tensor) -> tuple[Tensor, Tensor]:
    """``[runs, D]`` the mean of ``[runs, k, D]``, and the root mean square distance to it."""
    mean = messages.mean(1)
    return mean, (messages - mean.unsqueeze(1)).square().mean(1).sqrt()
