"""Sign flipping: send a step in the opposite direction."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bezoar._options import Factor
from bezoar.attacks._attack import Attack, Knowledge, SeenMessages


@dataclass(frozen=True)
class SignFlip(Attack):
    """Send the opposite of an update: ``x_p − s (y − x_p)``.

    ``x_p`` is the poisoned agent's model before its local update. Labels are left alone, and for
    itself the agent keeps the message ``y_p`` that the protocol asks for.

    Args:
        scale: the factor ``s``.
        broadcast: whether all neighbours are sent the same, with ``y = y_p``. Otherwise ``y`` is
            the message that the receiving neighbour itself sends.
    """

    scale: Factor = 1.0
    broadcast: bool = True

    name: ClassVar[str] = "sign_flip"
    knows: ClassVar[Knowledge] = "neighbours"

    def on_messages(self, seen: SeenMessages) -> Tensor:
        honest = seen.own_messages() if self.broadcast else seen.receivers_messages()
        before = seen.own_models()
        return before - self.scale * (honest - before)
