"""The rounds of one agent: offer the own message, collect those of the neighbours.

A neighbour that cannot be heard in a round is missing in that round, for one of the reasons in
:class:`~bezoar.agents._messages.Miss`. It is asked again in the next.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bezoar._checks import positive
from bezoar.agents._asker import Asker
from bezoar.agents._keys import Key, Peer
from bezoar.agents._messages import Miss, MissError, Vector
from bezoar.agents._offers import Offer, Offers
from bezoar.agents._server import Server

#: Patience with a neighbour that was late halves with every round, down to this part of it.
LEAST_PATIENCE = 1 / 16

#: How many events are kept in memory.
EVENTS = 1000

#: Seconds between two looks at whether the agent is to end, while it waits for others to begin.
LOOK = 0.2

#: Nobody is waited for longer than ten years: gRPC takes a deadline far beyond for one in the past.
LONGEST = 10 * 365 * 86_400.0


class StoppedError(Exception):
    """Somebody asks the process to end."""


@dataclass(frozen=True)
class Event:
    """A neighbour that was missing in a round, or a jump forward.

    Attributes:
        at: when, in seconds since 1970.
        round: in which round.
        peer: the neighbour's name.
        what: why.
        told: the same in words.
    """

    at: float
    round: int
    peer: str
    what: str
    told: str


@dataclass
class Tally:
    """What happened with one neighbour so far.

    Attributes:
        rounds: in how many rounds it was heard.
        misses: how often it was missing, by the reason.
        last: the last round in which it was heard.
        late: rounds in a row in which it was late.
    """

    rounds: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    last: int = 0
    late: int = 0


class Neighbours:
    """An agent's connections to its neighbours.

    Args:
        key: its own key.
        listen: where it listens, ``HOST:PORT``.
        peers: its neighbours.
        spec: the hash of what is trained.
        dtype: the type of the numbers in a message.
        length: how many there are.
        patience: seconds to wait for a neighbour in a round.
        wait: seconds to wait for neighbours that have not begun yet, in the first round; those who
            are far ahead show that the others need not be waited for.
        observers: who may ask for status and results, beside its owner.
        documents: what they may ask for, by name.
        watch: is told every event.
        stopped: is set when the agent is to end, as it does after its round. It ends at once where
            it only waits for others to begin.
    """

    def __init__(
        self,
        key: Key,
        listen: str,
        peers: Collection[Peer],
        spec: bytes,
        dtype: np.dtype[Any],
        length: int,
        *,
        patience: float,
        wait: float,
        observers: Collection[Peer] = (),
        documents: Mapping[str, Callable[[], bytes]] | None = None,
        watch: Callable[[Event], Any] | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        self._stopped = stopped or threading.Event()
        self._patience = min(positive("patience", patience), LONGEST)
        self._wait = min(positive("wait", wait), LONGEST)
        self._watch = watch
        self.tallies = {peer.name: Tally() for peer in peers}
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self.jumps = 0
        self._first = True
        self._lock = threading.Lock()
        self._askers = {peer.name: Asker(key, peer, spec, dtype, length) for peer in peers}
        self.offers = Offers()
        self._server = Server(
            *(key, listen, peers, observers, spec, self.offers, documents or {}, self._heard)
        )
        self._threads = ThreadPoolExecutor(max(1, len(self._askers)), "bezoar-asks")

    @property
    def received(self) -> int:
        """The bytes of messages received."""
        return sum(asker.received for asker in self._askers.values())

    @property
    def sent(self) -> int:
        """The bytes of messages sent."""
        return self._server.sent.total()

    def told(self) -> tuple[dict[str, Tally], list[Event]]:
        """What happened with each neighbour so far, and the last events, as copies."""
        with self._lock:
            tallies = {
                name: replace(tally, misses=tally.misses.copy())
                for name, tally in self.tallies.items()
            }
            return tallies, list(self._events)

    def exchange(self, number: int, offer: Offer) -> tuple[dict[str, Vector], int]:
        """Offer the own messages of a round, and collect those of the neighbours.

        An agent that hears nobody at all waits as long as its patience lasts: it would only train
        alone.

        Returns:
            The messages ``[D]`` by the neighbours' names, and the round that it has reached: this
            one, or a later one if it lags behind more than half of its neighbours. The next round
            writes its messages into the same memory.

        Raises:
            StoppedError: if it is to end while it waits in its first round.
        """
        self.offers.put(number, offer)
        began, insist = time.monotonic(), self._first
        while True:
            found = self._ask_all(number, insist)
            waited = time.monotonic() - began
            silent = not any(
                isinstance(each, np.ndarray) or each.newest is not None for each in found.values()
            )
            if insist or not silent or waited > self._patience or not found:
                break
            time.sleep(min(0.2, self._patience))
        self._first = False
        for name, each in found.items():
            self._note(number, name, each)
        heard = {name: each for name, each in found.items() if isinstance(each, np.ndarray)}
        return heard, self._reached(number, found)

    def _ask_all(self, number: int, insist: bool) -> "dict[str, Vector | MissError]":
        under_way = threading.Event()  # then nobody is waited for who has not begun

        def pull(name: str) -> Vector | MissError:
            late = self.tallies[name].late
            seconds = self._patience * max(0.5**late, LEAST_PATIENCE)
            wanted = (number, self._wait if insist else seconds)
            try:
                return self._askers[name].pull(*wanted, lambda: insist and not under_way.is_set())
            except MissError as error:
                if error.newest is not None:
                    under_way.set()
                return error

        asked = {name: self._threads.submit(pull, name) for name in self._askers}
        while insist and wait(asked.values(), LOOK).not_done:
            if self._stopped.is_set():
                raise StoppedError
        return {name: each.result() for name, each in asked.items()}

    def _note(self, number: int, name: str, found: Vector | MissError) -> None:
        with self._lock:
            tally = self.tallies[name]
            if isinstance(found, np.ndarray):
                tally.rounds, tally.last, tally.late = tally.rounds + 1, number, 0
                return
            tally.misses[found.miss] += 1
            tally.late += found.miss == Miss.LATE
        self._tell(Event(time.time(), number, name, found.miss, str(found)))

    def _tell(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)
        if self._watch is not None:
            self._watch(event)

    def _heard(self, name: str) -> None:
        """A neighbour asks, so it is alive: it gets all the patience there is."""
        with self._lock:
            self.tallies[name].late = 0

    def _reached(self, number: int, found: "Mapping[str, Vector | MissError]") -> int:
        """How far the agent may go on: to where more than half of its neighbours are.

        So no minority of neighbours can make it skip rounds.
        """
        newest = sorted(getattr(each, "newest", None) or 0 for each in found.values())
        # The round before it, since that round's messages are still there to be exchanged.
        reached = newest[(len(newest) - 1) // 2] - 1 if newest else 0
        if reached <= number:
            return number
        self.jumps += 1
        told = f"more than half of its neighbours are at round {reached + 1} or later"
        self._tell(Event(time.time(), number, "", "jump", told))
        return reached

    def linger(self, number: int) -> None:
        """Wait until every neighbour has the message of the last round, with some patience.

        Neighbours that were missing in the last round are not waited for.
        """
        there = {name for name, tally in self.tallies.items() if tally.last >= number - 1}
        self.offers.wait_until_taken(there, number, self._patience)

    def close(self) -> None:
        """Stop asking and answering."""
        for asker in self._askers.values():
            asker.close()
        self._threads.shutdown(cancel_futures=True)
        self._server.close()
