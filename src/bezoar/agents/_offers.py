"""What an agent has to offer: its messages of the last rounds."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from bezoar.agents._messages import Vector

#: How many rounds are offered: a neighbour that is up to two rounds behind misses nothing.
ROUNDS = 3


@dataclass(frozen=True)
class Offer:
    """The messages of one round.

    Attributes:
        message: ``[D]`` what is sent to all neighbours,
        others: but to these by name.
    """

    message: Vector
    others: Mapping[str, Vector] = field(default_factory=dict)

    def to(self, receiver: str) -> Vector:
        """What one neighbour receives."""
        return self.others.get(receiver, self.message)


class Offers:
    """The messages of the last rounds, for whoever asks, now or when they are there."""

    def __init__(self) -> None:
        self._rounds: dict[int, Offer] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._taken: dict[str, int] = {}

    @property
    def newest(self) -> int:
        """The newest round that is offered; 0 if none is."""
        with self._changed:
            return max(self._rounds, default=0)

    def put(self, number: int, offer: Offer) -> None:
        """Offer the messages of a round. The oldest are forgotten."""
        with self._changed:
            self._rounds[number] = offer
            for old in sorted(self._rounds)[:-ROUNDS]:
                del self._rounds[old]
            self._changed.notify_all()

    def wait(self, number: int, seconds: float) -> Offer | int | None:
        """The messages of a round, as soon as they are there.

        Returns:
            The newest round, if the round is no longer offered; nothing, if it is not there after
            so many seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self.newest >= number, seconds)
            if number in self._rounds:
                return self._rounds[number]
            return self.newest if self.newest > number else None

    def taken(self, receiver: str, number: int) -> None:
        """Note that a neighbour has received all of a round's message."""
        with self._changed:
            self._taken[receiver] = max(number, self._taken.get(receiver, 0))
            self._changed.notify_all()

    def wait_until_taken(self, receivers: set[str], number: int, seconds: float) -> None:
        """Wait until all these neighbours have a round's message, so many seconds at the most."""
        with self._changed:
            self._changed.wait_for(
                lambda: all(self._taken.get(name, 0) >= number for name in receivers), seconds
            )

    def close(self) -> None:
        """Send those away who wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
