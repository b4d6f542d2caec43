"""Checks of arguments: each returns the value, or raises an error that says what is allowed."""

import os
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from bezoar._errors import BezoarError


def non_negative(field: str, found: float) -> float:
    """``found`` as a float, or an error unless it is a number from 0 (infinity included)."""
    value = _number(found)
    if value is None or not value >= 0:
        raise BezoarError(f"{field}: expected a number of at least 0, found {found!r}")
    return value


def positive(field: str, found: float) -> float:
    """``found`` as a float, or an error unless it is a positive number (infinity included)."""
    value = _number(found)
    if value is None or not value > 0:
        raise BezoarError(f"{field}: expected a number above 0, found {found!r}")
    return value


def share(field: str, found: float) -> float:
    """``found`` as a float, or an error unless it is a number from 0 to 1."""
    value = _number(found)
    if value is None or not 0 <= value <= 1:
        raise BezoarError(f"{field}: expected a number from 0 to 1, found {found!r}")
    return value


def _number(found: Any) -> float | None:
    """A real number as a float, numpy's too; of anything else ``None``."""
    is_number = isinstance(found, Real) and not isinstance(found, bool)
    try:
        return float(found) if is_number else None
    except OverflowError:  # an integer beyond what a float holds
        return inf if found > 0 else -inf


def instance(field: str, found: Any, kinds: type | tuple[type, ...], expected: str) -> Any:
    """``found`` as it is, or an error unless it is of one of the kinds that are ``expected``."""
    if not isinstance(found, kinds):
        raise BezoarError(f"{field}: expected {expected}, found {found!r}")
    return found


def folder(field: str, found: Any) -> Path:
    """``found`` as a path, or an error unless it is a text or a path."""
    return Path(instance(field, found, (str, os.PathLike), "the path of a folder"))


def whole(field: str, found: Any, least: int, most: int | None = None) -> int:
    """``found`` as an int, or an error unless it is an integer from ``least`` to ``most``."""
    is_integer = isinstance(found, Integral) and not isinstance(found, bool)  # numpy's, too
    if not is_integer or found < least or (most is not None and found > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise BezoarError(f"{field}: expected an integer {allowed}, found {found!r}")
    return int(found)
