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
