"""Numbers as people read them."""

import math
from collections.abc import Iterable, Sequence


def number(value: float) -> str:
    """A number in few characters; a dash where it is not defined."""
    if math.isnan(value):
        return "–"
    if value == 0 or 1e-3 <= abs(value) < 10:
        return f"{value:.4f}"
    return f"{value:.2f}" if 10 <= abs(value) < 1e4 else f"{value:.1e}"


def with_spread(values: Sequence[float], digits: int | None = None) -> str:
    """The mean of some values and their standard deviation: ``0.8312 ±0.0041``.

    Both have this many ``digits`` after the point; by default as many as :func:`number` gives the
    mean.
    """
    mean = sum(values) / len(values)
    shown = number(mean) if digits is None or math.isnan(mean) else f"{mean:.{digits}f}"
    if len(values) == 1 or not math.isfinite(mean):
        return shown
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    if "e" in shown:
        return f"{shown} ±{number(deviation)}"
    return f"{shown} ±{deviation:.{len(shown.partition('.')[2])}f}"


def count(number: int, what: str) -> str:
    """``3 runs``, ``1 run``."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def duration(seconds: float) -> str:
    """A length of time, roughly."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def listed(numbers: Sequence[int | str], most: int = 8) -> str:
    """``3, 5``; the first of them if there are many, ``nobody`` if there are none."""
    if len(numbers) <= most:
        return ", ".join(map(str, numbers)) or "nobody"
    return f"{', '.join(map(str, numbers[:most]))}, … ({len(numbers)} in all)"


def joined(items: Iterable[object]) -> str:
    """``a, b and c``."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last
