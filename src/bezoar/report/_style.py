"""One look for every picture: a colour, a marker and a name for each rule."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

REGULAR = "#0072B2"
POISONED = "#D00000"


@dataclass(frozen=True)
class Look:
    """How a rule is drawn.

    Attributes:
        label: the paper's name, for legends.
        colour: distinguishable for colour-blind people, together with the marker.
        marker: a matplotlib marker.
        line: a matplotlib line style.
    """

    label: str
    colour: str
    marker: str
    line: str = "-"


LOOKS = {
    "weighted_mean": Look("WeiMean", "#D55E00", "o"),
    "trimmed_mean": Look("TriMean", "#0072B2", "s"),
    "faba": Look("FABA", "#009E73", "^"),
    "centered_clipping": Look("CC", "#CC79A7", "D"),
    "clipped_gossip": Look("CG", "#E69F00", "v"),
    "ios": Look("IOS", "#56B4E9", "P"),
    "rfa": Look("RFA", "#882255", "X"),
    "lfighter": Look("LFighter", "#999933", "<"),
    "mean": Look("Mean", "#7F4A1E", ">"),
    "median": Look("Median", "#332288", "h"),
    "krum": Look("Krum", "#117733", "p"),
    "local": Look("Local", "#777777", "d"),
    "baseline": Look("Baseline", "#000000", "", "--"),
}

#: For rules of the user's own.
OTHERS = ("#AA4499", "#44AA99", "#661100", "#6699CC", "#DDCC77")


def look(rule: str, place: int = 0) -> Look:
    """The look of a rule; rules that are not ours take turns with a few further colours."""
    return LOOKS.get(rule) or Look(rule, OTHERS[place % len(OTHERS)], "*", "-.")


#: The darkest background of a page that curves are drawn on, and how much they stand out from it.
DARK, CONTRAST = "#14171C", 3.5


def on_dark(colour: str) -> str:
    """A colour as it is on a dark page: lightened, if need be, until it stands out."""
    red, green, blue = _channels(colour)
    if red == green == blue:  # the baseline's black becomes white
        red = green = blue = 1 - red
    for step in range(101):
        lighter = [channel + (1 - channel) * step / 100 for channel in (red, green, blue)]
        shown = "#" + "".join(f"{round(255 * channel):02X}" for channel in lighter)
        if contrast(shown, DARK) >= CONTRAST:
            return shown
    return "#FFFFFF"


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in _channels(colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


@contextmanager
def pictures() -> Iterator[Any]:
    """Draw without a screen and in our style, leaving matplotlib as it was."""
    from matplotlib import pyplot as plt

    style: dict[Any, Any] = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "savefig.dpi": 160,
        "svg.hashsalt": "bezoar",
        "pdf.fonttype": 42,
    }
    previous = mpl.get_backend()
    plt.switch_backend("agg")
    try:
        with mpl.rc_context(style):
            yield plt
    finally:
        plt.close("all")
        plt.switch_backend(previous)
