"""Questions that the host asks the device where it computes.

A program that asks whether some number is NaN waits until the device has found it. On the CPU that
costs nothing. Elsewhere results are better computed as if every answer were no, all questions being
asked together in the end; where one answer is yes, everything is computed again, question by
question.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class _Thread(threading.local):
    """What a thread notes; None while it asks at once."""

    noted: list[Tensor] | None = None


_here = _Thread()


def some(flags: Tensor) -> bool:
    """Whether some flag is set. Within :func:`asked_late` the answer is no for the time being."""
    if _here.noted is None:
        return bool(flags.any())
    _here.noted.append(flags.any())
    return False


def answered_at_once() -> bool:
    """Whether :func:`some` tells the truth at once: iterations may then stop when they are done."""
    return _here.noted is None


@contextmanager
def asked_late() -> Iterator[Callable[[], bool]]:
    """Note the questions of the calling thread instead of asking them.

    What it gives tells whether the answer to some of them is yes: the one time that the device is
    asked.
    """
    noted: list[Tensor] = []
    before, _here.noted = _here.noted, noted
    try:
        yield lambda: bool(noted) and bool(torch.stack(noted).any())
    finally:
        _here.noted = before
