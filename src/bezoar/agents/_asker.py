"""The side of an agent that asks its neighbours."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bezoar._errors import BezoarError
from bezoar.agents._extra import needed
from bezoar.agents._keys import Key, Peer, host_name, one_line
from bezoar.agents._messages import (
    NO_DECOMPRESSION,
    PIECE,
    Expected,
    Miss,
    MissError,
    Question,
    Vector,
    largest_piece,
    read_answer,
)
from bezoar.agents._ports import read_address
from bezoar.agents._server import ASK, PULL, SERVICE

#: Seconds between two attempts to reach somebody who has not begun yet.
AGAIN = 0.1

#: A neighbour that is back is found within a second, a broken connection within fifteen. The other
#: side has three seconds to connect and to shake hands; then it is tried again.
OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 3_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.enable_http_proxy", 0),
    NO_DECOMPRESSION,
)


def connected(key: Key, peer: Peer, most: int) -> Any:
    """A connection to a peer that must show its very certificate; ``with`` closes it at the end.

    Args:
        key: the own key.
        peer: whom to reach.
        most: the bytes that one piece of an answer may have.
    """
    grpc: Any = needed("grpc")
    if not peer.address:
        raise BezoarError(
            f"peers: {peer.name}: address: expected HOST:PORT, found nothing; write down where "
            "it listens"
        )
    read_address(f"peers: {peer.name}: address", peer.address)
    credentials = grpc.ssl_channel_credentials(peer.certificate, key.private, key.certificate)
    options = (
        *OPTIONS,
        # Answers are read by the thread that asks, which saves a tenth of the time of a round.
        (needed("grpc.experimental").ChannelOptions.SingleThreadedUnaryStream, 1),
        ("grpc.ssl_target_name_override", host_name(peer.name)),
        ("grpc.max_receive_message_length", most),
    )
    return grpc.secure_channel(peer.address, credentials, options=options)


class Asker:
    """Asks one neighbour for its messages.

    Args:
        key: the own key.
        peer: the neighbour.
        spec: the hash of what is trained.
        dtype: the type of the numbers in a message.
        length: how many there are.

    Attributes:
        received: the bytes of messages that were received.
    """

    def __init__(
        self, key: Key, peer: Peer, spec: bytes, dtype: np.dtype[Any], length: int
    ) -> None:
        self._grpc: Any = needed("grpc")
        self.received = 0
        self._spec, self._dtype, self._length = spec, dtype, length
        self._channel = connected(key, peer, largest_piece(length, dtype))
        self._pull = self._channel.unary_stream(f"/{SERVICE}/{PULL}")
        # The same memory in every round: the system takes a sixth of a round to clear new memory.
        self._vector = np.empty(length, dtype)

    def pull(
        self, number: int, seconds: float, insist: Callable[[], bool] = lambda: False
    ) -> Vector:
        """The neighbour's message of a round; the next one is written into the same memory.

        Args:
            number: the round.
            seconds: how long to wait for it.
            insist: tells whether to try again where nobody listens yet; a wrong certificate is told
                at once all the same.

        Raises:
            MissError: where it cannot be had, with the reason.
        """
        until = time.monotonic() + seconds
        while True:
            try:
                return self._pull_once(number, max(until - time.monotonic(), 0.001))
            except MissError as error:
                # Whoever is late may be asked again: it gave up before this agent's time was over.
                again = error.miss == Miss.LATE or (error.miss == Miss.UNREACHABLE and insist())
                if not again or time.monotonic() + AGAIN > until:
                    raise
                time.sleep(AGAIN)

    def _pull_once(self, number: int, seconds: float) -> Vector:
        expected = Expected(number, self._spec, self._dtype, self._length)
        call = self._pull(Question(number, self._spec).pack(), timeout=seconds)
        try:
            return read_answer(self._counted(call), expected, self._vector)
        except self._grpc.RpcError as error:
            raise self._miss(error) from None
        finally:
            call.cancel()

    def _counted(self, call: Any) -> Iterator[bytes]:
        for piece in call:
            self.received += len(piece)
            yield piece

    def _miss(self, error: Any) -> MissError:
        """Why a question was not answered."""
        code, told = error.code(), one_line(error.details() or "no more is known")
        codes = self._grpc.StatusCode
        if code == codes.DEADLINE_EXCEEDED:
            return MissError(Miss.LATE, "its message did not come in time")
        if code == codes.RESOURCE_EXHAUSTED and "larger than max" in told:
            return MissError(Miss.LONG, told)
        if _is_slow(told):
            return MissError(Miss.LATE, told)
        if code == codes.PERMISSION_DENIED or _is_handshake(told):
            return MissError(Miss.CERTIFICATE, told)
        if code in (codes.INTERNAL, codes.UNIMPLEMENTED, codes.INVALID_ARGUMENT):
            return MissError(Miss.MALFORMED, told)
        return MissError(Miss.UNREACHABLE, told)

    def close(self) -> None:
        """Hang up."""
        self._channel.close()


def ask(key: Key, peer: Peer, what: str, seconds: float, most: int) -> bytes:
    """A document that an agent gives its owner and observers.

    Args:
        key: the key of who asks.
        peer: the agent.
        what: which document.
        seconds: how long to wait for it.
        most: the bytes that it may have.

    Raises:
        BezoarError: where it cannot be had.
    """
    grpc: Any = needed("grpc")
    content = bytearray()
    with connected(key, peer, PIECE + 1024) as channel:
        call = channel.unary_stream(f"/{SERVICE}/{ASK}")(what.encode(), timeout=seconds)
        try:
            for piece in call:
                content += piece
                if len(content) > most:
                    call.cancel()
                    raise BezoarError(
                        f"{peer.name}: its {what} has more than {most:,} bytes; the rest was not "
                        "read"
                    )
        except grpc.RpcError as error:
            told = one_line(error.details() or str(error.code()))
            raise BezoarError(
                f"{peer.name}: {peer.address} does not tell its {what}: {told}"
            ) from None
    return bytes(content)


def _is_slow(told: str) -> bool:
    """Whether the other side took a connection, and then neither shook hands nor refused to."""
    text = told.lower()
    over = any(words in text for words in ("endpoint closing", "timed out"))
    return over and any(words in text for words in ("handshake", "settings frame"))


def _is_handshake(told: str) -> bool:
    """Whether a connection failed because one side did not accept the other's certificate."""
    text = told.lower()
    if "handshake read failed" in text:  # it hung up before there was anything to refuse
        return False
    # A side that does not know the certificate it is shown hangs up without a word.
    hung_up = "failed to connect" in text and "socket closed" in text
    return hung_up or any(word in text for word in ("handshake", "certificate", "verification"))
