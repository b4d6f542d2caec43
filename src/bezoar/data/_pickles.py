"""Pickles from outside that hold arrays of bytes and plain containers, read without running them.

A pickle is a program that may call anything importable. Here the few names that a pickled array
needs stand for classes of ours, which check what they are given, and every other name is refused.
"""

import io
import pickle
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bezoar._errors import BezoarError


def read_pickle(content: bytes, name: str) -> Any:
    """What a pickle holds: numbers, text, bytes, containers of them, and :class:`ByteArray`.

    Strings of Python 2 are read as Latin-1. Errors call it by its name.
    """
    try:
        return _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except BezoarError as error:
        raise BezoarError(f"{name}: refused: {error}") from None
    except Exception as error:  # a broken pickle can raise nearly anything
        raise BezoarError(f"{name}: not a pickle that can be read: {error!r}") from error


class _StandIn:
    """A class that no pickle can change: its ``__setstate__`` fails when called on the class."""

    def __setstate__(self, state: Any) -> None:
        raise BezoarError(f"a {type(self).__name__} with a state")


class ByteArray(_StandIn):
    """Stands for ``numpy.ndarray`` and for the function that makes one in a pickle.

    Attributes:
        values: the array, of uint8; read-only.
    """

    values: NDArray[np.uint8]

    def __init__(self, kind: Any, shape: Any, code: Any) -> None:
        """As numpy's ``_reconstruct``: an empty array, which is given its state later."""

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, content = state
        if isinstance(content, str):  # the bytes of Python 2
            content = content.encode("latin1")
        if not isinstance(kind, _ByteType) or not isinstance(content, bytes):
            raise BezoarError("an array of something other than bytes")
        if min(shape, default=0) < 0 or prod(shape) != len(content):
            raise BezoarError(f"an array of shape {shape} with {len(content)} bytes")
        values = np.frombuffer(content, dtype=np.uint8)
        self.values = values.reshape(shape, order="F" if by_columns else "C")


class _ByteType(_StandIn):
    """Stands for ``numpy.dtype``, and can only be uint8."""

    def __init__(self, code: Any, align: Any = False, copy: Any = False) -> None:
        if code not in ("u1", "|u1", "uint8"):
            raise BezoarError(f"an array of {code!r}; allowed: bytes")

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment, which a byte does not have."""


class _Latin1(_StandIn):
    """Stands for ``codecs.encode``, by which Python 3 writes bytes for Python 2."""

    def __new__(cls, text: Any, encoding: Any) -> Any:
        if not isinstance(text, str) or encoding != "latin1":
            raise BezoarError(f"bytes encoded as {encoding!r}; allowed: latin1")
        return text.encode("latin1")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): ByteArray,  # numpy 1
    ("numpy._core.multiarray", "_reconstruct"): ByteArray,  # numpy 2
    ("numpy", "ndarray"): ByteArray,
    ("numpy", "dtype"): _ByteType,
    ("_codecs", "encode"): _Latin1,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise BezoarError(
                f"it asks for {module}.{name}; allowed: arrays of bytes and plain containers"
            )
        return _ALLOWED[module, name]
