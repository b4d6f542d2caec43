"""What agents send each other: raw numbers behind a header of fixed size.

    question    magic, round, hash of the spec
    answer      pieces: first a header, then the bytes of the numbers, cut anywhere
    header      magic, what it is, type of the numbers, how many, round, hash of the spec

All integers are little-endian. Nothing that arrives is ever unpickled or evaluated. Whoever reads
an answer knows what it should be, has the memory for exactly that, and stops at the first byte too
many.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: How every question and every answer begins; the last byte is the version of this format.
MAGIC = b"BZR\x01"

#: Bytes of numbers in one piece. gRPC takes at most 4 MB at a time; larger pieces are no faster.
PIECE = 1 << 20

#: gRPC is not to unpack what others have compressed: a few bytes may become very many.
NO_DECOMPRESSION = ("grpc.per_message_decompression", 0)

#: The types that numbers may have.
DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("<f8")}

_QUESTION = struct.Struct("<4sQ32s")
_HEADER = struct.Struct("<4sBBxxQQ32s")

#: Bytes that a question may have, and those of an answer before its numbers.
QUESTION_BYTES, HEADER_BYTES = _QUESTION.size, _HEADER.size

Vector = NDArray[Any]


class Kind(IntEnum):
    """What an answer is."""

    #: The message of the round that was asked for.
    MESSAGE = 1
    #: The round that was asked for is no longer offered; the header has the newest round.
    GONE = 2
    #: The sender trains something else; the header has the hash of what it trains.
    OTHER_SPEC = 3


class Miss(StrEnum):
    """Why a neighbour is missing in a round."""

    UNREACHABLE = "unreachable"
    LATE = "late"
    CERTIFICATE = "certificate"
    BEHIND = "this agent lags"
    SPEC = "other spec"
    SHORT = "short"
    LONG = "long"
    STALE = "other round"
    TYPE = "wrong type"
    SHAPE = "wrong shape"
    MALFORMED = "malformed"
    NOT_FINITE = "not finite"


class MissError(Exception):
    """A neighbour is missing in this round.

    Attributes:
        miss: why.
        newest: the newest round that the neighbour offers, where it says so.
    """

    def __init__(self, miss: Miss, told: str, newest: int | None = None) -> None:
        super().__init__(told)
        self.miss, self.newest = miss, newest


@dataclass(frozen=True)
class Question:
    """What an agent asks a neighbour for: the message of one round of one spec."""

    round: int
    spec: bytes

    def pack(self) -> bytes:
        return _QUESTION.pack(MAGIC, self.round, self.spec)

    @classmethod
    def unpack(cls, content: bytes) -> "Question":
        """The question in some bytes.

        Raises:
            ValueError: where there is none.
        """
        if len(content) != QUESTION_BYTES:
            raise ValueError(f"expected {QUESTION_BYTES} bytes, found {len(content)}")
        magic, number, spec = _QUESTION.unpack(content)
        if magic != MAGIC:
            raise ValueError(f"expected {MAGIC!r} at the beginning, found {magic!r}")
        return cls(number, spec)


@dataclass(frozen=True)
class Expected:
    """What the message of a round must be.

    Attributes:
        round: the number of the round.
        spec: ``[32]`` the hash of what is trained.
        dtype: the type of the numbers.
        length: how many there are.
    """

    round: int
    spec: bytes
    dtype: np.dtype[Any]
    length: int


def answer(kind: Kind, number: int, spec: bytes, vector: Vector | None = None) -> Iterator[bytes]:
    """The pieces of an answer.

    Args:
        kind: what it is.
        number: the round of the message, or the newest round.
        spec: the hash of what the sender trains.
        vector: ``[D]`` the message.
    """
    if vector is None:
        yield _HEADER.pack(MAGIC, kind, 0, 0, number, spec)
        return
    code = next(code for code, known in DTYPES.items() if known == vector.dtype)
    header = _HEADER.pack(MAGIC, kind, code, vector.size, number, spec)
    content = _bytes_of(np.ascontiguousarray(vector))
    yield header + content[:PIECE]  # a short message is one piece
    for start in range(PIECE, len(content), PIECE):
        yield bytes(content[start : start + PIECE])


def largest_piece(length: int, dtype: np.dtype[Any]) -> int:
    """The bytes that a piece of a message of so many numbers may have."""
    return HEADER_BYTES + min(PIECE, length * dtype.itemsize)


def read_answer(pieces: Iterable[bytes], expected: Expected, into: Vector | None = None) -> Vector:
    """The numbers in an answer.

    It takes the memory of what is expected, and a piece. Nothing is read after the first byte too
    many.

    Args:
        pieces: the answer.
        expected: what it should be.
        into: ``[D]`` where to write the numbers; by default in new memory.

    Returns:
        ``[D]`` finite numbers.

    Raises:
        MissError: where the answer is anything else than what is expected.
    """
    stream = iter(pieces)
    header = next(stream, b"")
    _check_header(header[:HEADER_BYTES], expected)
    vector = np.empty(expected.length, expected.dtype) if into is None else into
    content, filled = _bytes_of(vector), 0
    piece: bytes | memoryview = memoryview(header)[HEADER_BYTES:]
    while True:
        stop = filled + len(piece)
        if stop > len(content):
            raise MissError(Miss.LONG, f"more than the {len(content)} bytes expected")
        content[filled:stop] = piece
        filled = stop
        following = next(stream, None)
        if following is None:
            break
        piece = following
    if filled < len(content):
        raise MissError(Miss.SHORT, f"{filled} of the {len(content)} bytes expected")
    if not _is_finite(vector):
        raise MissError(Miss.NOT_FINITE, "NaN or infinity among its numbers")
    return vector


def _check_header(header: bytes, expected: Expected) -> None:
    if len(header) < HEADER_BYTES:
        told = f"a header of {len(header)} bytes, expected {HEADER_BYTES}"
        raise MissError(Miss.SHORT, told)
    magic, kind, code, length, number, spec = _HEADER.unpack(header)
    if magic != MAGIC or kind not in Kind.__members__.values():
        raise MissError(Miss.MALFORMED, f"a header that begins with {header[:5]!r}")
    if spec != expected.spec or kind == Kind.OTHER_SPEC:
        told = f"it trains {spec.hex()[:12]}, this agent {expected.spec.hex()[:12]}"
        raise MissError(Miss.SPEC, told)
    if kind == Kind.GONE:
        told = f"round {expected.round} is no longer offered, the newest is {number}"
        raise MissError(Miss.BEHIND, told, newest=number)
    if number != expected.round:
        raise MissError(Miss.STALE, f"round {number}, expected {expected.round}")
    if DTYPES.get(code) != expected.dtype:
        told = str(DTYPES.get(code, f"unknown type {code}"))
        raise MissError(Miss.TYPE, f"{told}, expected {expected.dtype}")
    if length != expected.length:
        raise MissError(Miss.SHAPE, f"{length} numbers, expected {expected.length}")


def _bytes_of(vector: Vector) -> memoryview:
    """The memory of some numbers."""
    return vector.data.cast("B")


def _is_finite(vector: Vector) -> bool:
    # A sum of squares is finite if all numbers are, unless it overflows; it takes no memory.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(vector @ vector):
            return True
    return bool(np.isfinite(vector).all())
