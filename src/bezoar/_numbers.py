"""Numbers as people read them."""

import math


def number(value: float) -> str:
    """A number in few characters; a dash where it is not defined."""
    if math.isnan(value):
        return "–"
    if value == 0 or 1e-3 <= abs(value) < 10:
        return f"{value:.4f}"
    return f"{value:.2f}" if 10 <= abs(value) < 1e4 else f"{value:.1e}"
