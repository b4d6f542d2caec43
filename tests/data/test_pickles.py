import os
import pickle
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from bezoar import BezoarError
from bezoar.data._pickles import ByteArray, read_pickle


@given(
    arrays(np.uint8, array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5)),
    st.sampled_from("CF"),
    st.sampled_from([2, 3, 4]),
)
def test_arrays_of_bytes_are_read_as_they_were_written(array, order, protocol):
    pickled = pickle.dumps({"data": np.asarray(array, order=order)}, protocol)
    found = read_pickle(pickled, "it")["data"]
    assert isinstance(found, ByteArray)
    assert found.values.dtype == np.uint8
    np.testing.assert_array_equal(found.values, array)


def test_plain_containers():
    plain = {"a": [1, 2.5, None, True], "b": ("text", b"bytes", {"c": {1, 2}})}
    assert read_pickle(pickle.dumps(plain, 4), "it") == plain


def python_2_pickle(array):
    """An array as Python 2 with numpy 1 pickled it: bytes are strings, in the official archives."""
    content = array.tobytes()
    return b"".join(
        [
            b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n",
            b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R",
            b"(K\x01J" + struct.pack("<iBi", array.shape[0], ord("J"), array.shape[1]) + b"\x86",
            b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R",
            b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
            b"\x89T" + struct.pack("<i", len(content)) + content + b"tb.",
        ]
    )


def test_pickles_of_python_2():
    array = np.arange(256, dtype=np.uint8).reshape(8, 32)
    np.testing.assert_array_equal(read_pickle(python_2_pickle(array), "it").values, array)


class Runs:
    """What a pickle of this runs when it is loaded."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def test_a_pickle_that_runs_a_command_is_refused_and_does_not_run_it(tmp_path):
    target = tmp_path / "was here"
    hostile = pickle.dumps({"data": Runs(os.mkdir, str(target))}, 2)
    with pytest.raises(BezoarError, match=r"it: refused: it asks for posix.mkdir; allowed: arrays"):
        read_pickle(hostile, "it")
    assert not target.exists()
    pickle.loads(hostile)
    assert target.exists(), "the pickle was harmless, so the test said nothing"


@pytest.mark.parametrize(
    "hostile",
    [
        pickle.dumps(Runs(eval, "1 + 1"), 2),
        pickle.dumps(Runs(getattr, "", "upper"), 4),
        pickle.dumps(np.array([1, "two", None], dtype=object), 2),
        pickle.dumps(np.zeros(3), 2),
        pickle.dumps(np.float64(1), 2),
        pickle.dumps(np.zeros(3, dtype=[("a", "u1")]), 2),
        pickle.dumps(np.ma.zeros(3, dtype=np.uint8), 2),
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.",
        b"\x80\x04\x8c\x05numpy\x8c\x08f2py.cfu\x93.",
        b"\x82\x01.",  # of the extension registry
        b"Pfile\n.",  # a persistent id
    ],
)
def test_other_names_and_other_arrays_are_refused(hostile):
    with pytest.raises(BezoarError, match=r"^it: "):
        read_pickle(hostile, "it")


@pytest.mark.parametrize(
    "shape", [(2**40,), (2**20, 2**20), (-1,), (-2, -4), (7,), (2, 3), ("8",), (8.0,)]
)
def test_an_array_has_as_many_bytes_as_it_says(shape):
    right = pickle.dumps((0, (8,), np.dtype("u1"), False, b"12345678"), 2)
    wrong = pickle.dumps((0, shape, np.dtype("u1"), False, b"12345678"), 2)
    begin = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    state = slice(2, -1)  # without the protocol and the end
    assert read_pickle(begin + right[state] + b"b.", "it").values.tobytes() == b"12345678"
    with pytest.raises(BezoarError, match=r"^it: "):
        read_pickle(begin + wrong[state] + b"b.", "it")


@pytest.mark.parametrize("name", ["numpy\nndarray", "numpy\ndtype", "_codecs\nencode"])
def test_a_pickle_cannot_change_what_stands_for_a_name(name):
    before = read_pickle(f"c{name}\n.".encode(), "it")
    attributes = dict(vars(before))
    for state in (b"}X\x01\x00\x00\x00aK\x01s", b"N}X\x01\x00\x00\x00aK\x01s\x86"):
        with pytest.raises(BezoarError, match=r"^it: "):
            read_pickle(b"\x80\x02c" + name.encode() + b"\n" + state + b"b.", "it")
    assert dict(vars(before)) == attributes


@given(st.data())
def test_a_damaged_pickle_is_refused_or_read_but_never_anything_else(data):
    whole = bytearray(pickle.dumps({"data": np.arange(40, dtype=np.uint8), "labels": [1, 2]}, 2))
    cut = data.draw(st.integers(0, len(whole)))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    with suppress(BezoarError):
        read_pickle(bytes(whole[:cut]), "it")
