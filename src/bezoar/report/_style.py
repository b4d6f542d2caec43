"""How curves look: the label, colour, marker and line of each rule, and matplotlib's settings."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, groupby
from typing import Any
from zlib import crc32

from bezoar._errors import BezoarError
from bezoar._parts import parts_of
from bezoar.report._page import Curve, Panel

#: The colours of regular and of poisoned agents.
REGULAR, POISONED = "#0072B2", "#D00000"

#: What the weighted mean is called where nobody is poisoned.
BASELINE = "baseline"

#: Colours and markers for rules that do not say theirs.
OTHER_COLOURS = ("#AA4499", "#44AA99", "#661100", "#6699CC", "#DDCC77")
OTHER_MARKERS = ("*", "o", "s", "^", "v", "D", "P", "X")

#: Colours and matplotlib's markers that a rule may say, and examples of them.
COLOUR = "#[0-9A-Fa-f]{6}", "'#0072B2'"
MARKER = r"[.,ov^<>12348spP*hH+xXdD|_]|\$[^$]+\$", "'o' or '$h$'"

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
    """The look that a rule's class gives it; what the class does not say follows from the name.

    A rule in a file of the user's own gets all from its name: showing results runs no such file.
    """
    if rule == BASELINE:
        return Look(rule, "Baseline", "#000000", "", "--")
    # What the class itself says: a rule made from another one must not look like it.
    said = vars(parts_of("aggregator").get(rule, object))
    place, other = divmod(crc32(rule.encode()), len(OTHER_MARKERS))
    colour = said.get("colour") or OTHER_COLOURS[place % len(OTHER_COLOURS)]
    marker = said.get("marker") or OTHER_MARKERS[other]
    for field, found, (allowed, example) in (
        ("colour", colour, COLOUR),
        ("marker", marker, MARKER),
    ):
        if not re.fullmatch(allowed, str(found)):
            raise BezoarError(f"{rule}: {field}: expected one such as {example}, found {found!r}")
    line = "-" if said.get("colour") else "-."
    return Look(rule, said.get("label") or rule, colour, marker, line)


def is_baseline(name: str) -> bool:
    """Whether the curve of this name is the baseline, with whatever options."""
    return name.partition(":")[0] == BASELINE


def legend(panels: Iterable[Panel]) -> dict[str, Look]:
    """The looks of all curves by their names, in the order of a legend.

    Rules come in the order in which they are listed, then users' own, then the baseline. Labels
    have the options only where a rule occurs with several sets of them.
    """
    known = list(parts_of("aggregator"))

    def order(curve: Curve) -> tuple[int, str, str]:
        place = known.index(curve.rule) if curve.rule in known else len(known)
        return place + (curve.rule == BASELINE), curve.rule, curve.options

    looks = {}
    curves = {curve.name: curve for panel in panels for curve in panel.curves}
    for rule, group in groupby(sorted(curves.values(), key=order), lambda curve: curve.rule):
        plain, several = look(rule), list(group)
        for curve, line in zip(several, cycle(LINES), strict=False):
            name, label = f"{rule}:{curve.options}", f"{plain.label} {curve.options or 'default'}"
            told = replace(plain, name=name, label=label, line=line)
            looks[curve.name] = told if len(several) > 1 else plain
    return looks


#: The background of a dark page, and the contrast to it that a curve needs.
DARK, CONTRAST = "#14171C", 3.5


def on_dark(colour: str) -> str:
    """A colour for dark pages: made lighter until its contrast is large enough."""
    channels = _channels(colour)
    if len(set(channels)) == 1:  # the baseline's black becomes white
        channels = [1 - channel for channel in channels]
    for step in range(101):
        lighter = [channel + (1 - channel) * step / 100 for channel in channels]
        shown = "#" + "".join(f"{round(255 * channel):02X}" for channel in lighter)
        if contrast(shown, DARK) >= CONTRAST:
            break
    return shown


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


def _channels(colour: str) -> list[float]:
    """Red, green and blue, from 0 to 1."""
    return [channel / 255 for channel in bytes.fromhex(colour[1:])]


def literal(text: str) -> str:
    """A text from outside for matplotlib, which would read what is between two ``$`` as TeX."""
    return text.replace("$", r"\$")


@contextmanager
def pictures() -> Iterator[Any]:
    """Gives matplotlib's ``pyplot``, in our style and without a screen; restores it afterwards."""
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
