"""What is read from the wire is what was sent, or nothing; whatever arrives."""

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezoar.agents._messages import (
    HEADER_BYTES,
    PIECE,
    Expected,
    Kind,
    Miss,
    MissError,
    Question,
    answer,
    largest_piece,
    read_answer,
)

SPEC = bytes(range(32))


def message(length=1000, dtype="<f4", seed=0):
    return np.random.default_rng(seed).standard_normal(length).astype(dtype)


def expected(vector, number=7):
    return Expected(number, SPEC, vector.dtype, vector.size)


def why(pieces, wanted):
    with pytest.raises(MissError) as found:
        read_answer(pieces, wanted)
    return found.value.miss


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("length", [1, 1000, PIECE // 4, PIECE // 4 + 1, 700_001])
def test_a_message_arrives_as_it_was_sent(dtype, length):
    vector = message(length, dtype)
    pieces = list(answer(Kind.MESSAGE, 7, SPEC, vector))
    assert max(map(len, pieces)) <= largest_piece(length, vector.dtype)
    np.testing.assert_array_equal(read_answer(pieces, expected(vector)), vector)


@given(st.lists(st.integers(1, 4000), max_size=20))
def test_how_it_is_cut_does_not_matter(sizes):
    vector = message()
    whole = b"".join(answer(Kind.MESSAGE, 7, SPEC, vector))
    pieces, start = [whole[:HEADER_BYTES]], HEADER_BYTES
    for size in sizes:
        pieces.append(whole[start : start + size])
        start += size
    pieces.append(whole[start:])
    np.testing.assert_array_equal(read_answer(pieces, expected(vector)), vector)


def test_everything_else_is_a_miss_with_its_reason():
    vector = message()
    wanted = expected(vector)
    whole = b"".join(answer(Kind.MESSAGE, 7, SPEC, vector))
    bad = vector.copy()
    bad[500] = np.nan
    huge = vector.copy()
    huge[0] = np.inf
    assert why([], wanted) == Miss.SHORT
    assert why([whole[:10]], wanted) == Miss.SHORT
    assert why([whole[:-1]], wanted) == Miss.SHORT
    assert why([whole, b"x"], wanted) == Miss.LONG
    assert why([b"PK\x03\x04" + whole[4:]], wanted) == Miss.MALFORMED
    assert why(answer(Kind.MESSAGE, 6, SPEC, vector), wanted) == Miss.STALE
    assert why(answer(Kind.MESSAGE, 7, bytes(32), vector), wanted) == Miss.SPEC
    assert why(answer(Kind.MESSAGE, 7, SPEC, vector.astype("<f8")), wanted) == Miss.TYPE
    assert why(answer(Kind.MESSAGE, 7, SPEC, vector[1:]), wanted) == Miss.SHAPE
    assert why(answer(Kind.MESSAGE, 7, SPEC, bad), wanted) == Miss.NOT_FINITE
    assert why(answer(Kind.MESSAGE, 7, SPEC, huge), wanted) == Miss.NOT_FINITE


def test_large_finite_numbers_are_finite():
    vector = np.full(4, np.finfo("<f8").max)
    found = read_answer(answer(Kind.MESSAGE, 7, SPEC, vector), expected(vector))
    np.testing.assert_array_equal(found, vector)


def test_a_round_that_is_gone_tells_the_newest():
    with pytest.raises(MissError) as found:
        read_answer(answer(Kind.GONE, 12, SPEC), expected(message()))
    assert (found.value.miss, found.value.newest) == (Miss.BEHIND, 12)


def test_an_endless_answer_is_cut_off():
    vector, read = message(), []

    def endless():
        yield from answer(Kind.MESSAGE, 7, SPEC, vector)
        while True:
            read.append(1)
            yield bytes(PIECE)

    assert why(endless(), expected(vector)) == Miss.LONG
    assert len(read) == 1


def malformed(rng, whole):
    """Some bytes that are not the message, or hardly: cut, changed, lengthened or made up."""
    content = bytearray(whole)
    kind = rng.randrange(5)
    if kind == 0:
        content = content[: rng.randrange(len(content))]
    elif kind == 1:
        for _ in range(rng.randrange(1, 4)):
            content[rng.randrange(HEADER_BYTES)] ^= 1 << rng.randrange(8)
    elif kind == 2:
        content += rng.randbytes(rng.randrange(1, 3 * len(whole)))
    elif kind == 3:
        content = bytearray(rng.randbytes(rng.randrange(2 * len(whole))))
    else:
        place = HEADER_BYTES + 4 * rng.randrange((len(content) - HEADER_BYTES) // 4)
        content[place : place + 4] = np.float32(np.nan).tobytes()
    return bytes(content)


def test_no_malformed_message_crashes_the_reader_or_takes_more_memory():
    rng, vector = random.Random(0), message(2000)
    whole = b"".join(answer(Kind.MESSAGE, 7, SPEC, vector))
    misses = dict.fromkeys(Miss, 0)
    peak = 0
    tracemalloc.start()
    try:
        for _ in range(12_000):
            content = malformed(rng, whole)
            cut = rng.randrange(len(content) + 1)
            pieces = iter((content[:cut], content[cut:]))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                read_answer(pieces, expected(vector))
            except MissError as error:
                misses[error.miss] += 1
            peak = max(peak, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    # A change of a bit that means nothing, such as in the two unused bytes, leaves a message whole.
    assert sum(misses.values()) > 10_000
    assert min(misses[m] for m in (Miss.SHORT, Miss.LONG, Miss.MALFORMED, Miss.NOT_FINITE)) > 100
    assert peak <= 2 * vector.nbytes  # beside the pieces, which were made here


def test_no_malformed_question_is_understood():
    rng, whole = random.Random(1), Question(7, SPEC).pack()
    assert Question.unpack(whole) == Question(7, SPEC)
    for _ in range(10_000):
        content = rng.randbytes(rng.randrange(2 * len(whole)))
        with pytest.raises(ValueError, match="expected"):
            Question.unpack(content)
