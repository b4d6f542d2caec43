"""One look for every picture: the label, colour, marker and line of each rule."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any
from zlib import crc32

from bezoar.aggregators import AGGREGATORS

#: The colours of regular and of poisoned agents.
REGULAR, POISONED = "#0072B2", "#D00000"

#: What the weighted mean is called where nobody is poisoned.
BASELINE = "baseline"

#: The colour and the marker of each rule.
COLOURS = {
    "weighted_mean": ("#D55E00", "o"),
    "trimmed_mean": ("#0072B2", "s"),
    "faba": ("#009E73", "^"),
    "centered_clipping": ("#CC79A7", "D"),
    "clipped_gossip": ("#E69F00", "v"),
    "ios": ("#56B4E9", "P"),
    "rfa": ("#882255", "X"),
    "lfighter": ("#999933", "<"),
    "mean": ("#7F4A1E", ">"),
    "median": ("#332288", "h"),
    "krum": ("#117733", "p"),
    "local": ("#777777", "d"),
    BASELINE: ("#000000", ""),
}

#: Colours and markers for rules of the user's own.
OTHER_COLOURS = ("#AA4499", "#44AA99", "#661100", "#6699CC", "#DDCC77")
OTHER_MARKERS = ("*", "o", "s", "^", "v", "D", "P", "X")

#: Matplotlib's line styles, for one rule with several sets of options.
LINES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Look:
    """How a curve is drawn.

    Attributes:
        name: what tells it apart from all other curves of a page.
        label: what the legend says.
        colour: distinguishable for colour-blind people, together with the marker.
        marker: a matplotlib marker, or nothing.
        line: a matplotlib line style.
    """

    name: str
    label: str
    colour: str
    marker: str
    line: str = "-"


def look(rule: str) -> Look:
    """The look of a rule; for a rule of the user's own, colour and marker follow from its name."""
    if rule == BASELINE:
        return Look(rule, "Baseline", *COLOURS[rule], "--")
    label = AGGREGATORS[rule].label if rule in AGGREGATORS else rule
    if rule in COLOURS:
        return Look(rule, label, *COLOURS[rule])
    colour, marker = divmod(crc32(rule.encode()), len(OTHER_MARKERS))
    own = OTHER_COLOURS[colour % len(OTHER_COLOURS)], OTHER_MARKERS[marker]
    return Look(rule, label, *own, "-.")


def looks(rules: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Look]:
    """The looks of rules with their options, in the order of a legend.

    Our rules come first, then the user's own, then the baseline. Labels have the options only
    where a rule occurs with several sets of them.
    """
    order = [rule for rule in COLOURS if rule != BASELINE]

    def place(rule: str) -> int:
        return order.index(rule) if rule in order else len(order) + (rule == BASELINE)

    options: dict[str, list[str]] = {}
    for rule, text in sorted(set(rules), key=lambda pair: (place(pair[0]), pair)):
        options.setdefault(rule, []).append(text)
    found = {}
    for rule, several in options.items():
        plain = look(rule)
        for line, text in zip(cycle(LINES), several, strict=False):
            name, label = f"{rule}:{text}", f"{plain.label} {text or 'default'}"
            told = replace(plain, name=name, label=label, line=line)
            found[rule, text] = told if len(several) > 1 else plain
    return found


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
    import matplotlib as mpl
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
