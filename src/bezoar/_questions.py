"""Questions that the host asks the device where it computes.

A program that asks whether some number is NaN waits until the device has found it. On the CPU that
costs nothing. Elsewhere results are better computed as if every answer were no, all questions being
asked together in the end; where one answer is yes, everything is computed again, question by
question.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_here = threading.local()


def some(flags: Tensor) -> bool:
    """Whether some flag is set. Within :func:`asked_late` the answer is no for the time being."""
    noted: list[Tensor] | None = getattr(_here, "noted", None)
    if noted is None:
        return bool(flags.any())
    noted.append(flags.any())
    return False


def answered_at_once() -> bool:
    """Whether :func:`some` tells the truth at once: iterations may then stop when they are done."""
    return getattr(_here, "noted", None) is None


class LateQuestions:
    """Questions that were noted."""

    def __init__(self) -> None:
        self._noted: list[Tensor] = []

    def some(self) -> bool:
        """Whether the answer to some question is yes: the one time that the device is asked."""
        return bool(self._noted) and bool(torch.stack(self._noted).any())


@contextmanager
def asked_late() -> Iterator[LateQuestions]:
    """Note the questions of the calling thread instead of asking them."""
    questions = LateQuestions()
    before = getattr(_here, "noted", None)
    _here.noted = questions._noted
    try:
        yield questions
    finally:
        _here.noted = before
