"""Claims about figures, and what runs say of them.

A claim is judged seed by seed: a margin says by how much it holds, negative where it does not. It
*holds* if every seed's margin is above the resolution, *does not hold* if every seed's is below
minus the resolution, and is *undecided* at this number of seeds otherwise. Runs that are shorter
than the figure's decide nothing. Every measurement shows what shorter runs would have, since their
steps are the same, so a claim also tells at which lengths it holds.

The resolution is what a run can tell at all: two standard errors of accuracies, which is 0.01 on
10,000 test images, and for sizes, whose margins are in powers of ten, a factor of 1.12.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bezoar._arrays import Floats
from bezoar.paper._comparisons import FIGURES
from bezoar.paper._criteria import Criterion, Curves, MissingRunError
from bezoar.report import JudgedClaim, Verdict

#: Stands between a claim and the remarks on how it was judged, if there are some.
JUDGED = "; judged "


@dataclass(frozen=True)
class Claim:
    """Something the paper says of a figure.

    Attributes:
        figure: of :data:`~bezoar.paper.FIGURES`.
        text: the claim in one sentence, with the number it is judged by.
        criterion: how it is judged.
    """

    figure: str
    text: str
    criterion: Criterion

    @property
    def paper(self) -> str:
        """Where the paper says so."""
        return FIGURES[self.figure].section


def verdict(margins: Sequence[float], resolution: float) -> Verdict:
    """The verdict that follows from the margins of all seeds; undecided without margins."""
    if margins and all(margin > resolution for margin in margins):
        return "holds"
    if margins and all(margin < -resolution for margin in margins):
        return "does not hold"
    return "undecided"


def judge(
    claim: Claim, curves: Curves, remarks: Sequence[str] = (), too_short: bool = False
) -> JudgedClaim:
    """Judge a claim by the curves of its figure.

    Remarks tell how the curves differ from the paper's, such as "at small scale". Runs that are
    ``too_short`` decide nothing.
    """
    text = claim.text
    if remarks:
        text = f"{text.removesuffix('.')}{JUDGED}{', '.join(remarks)}."
    try:
        margin, numbers = claim.criterion.judge(curves)
        margins, measured = margin.tolist(), _sentence(claim.criterion, numbers)
        if not too_short:
            measured = " ".join([measured, *_lengths(claim.criterion, curves)])
    except MissingRunError as missing:
        margins, measured = [], f"Not judged: {missing}."
    resolution = claim.criterion.resolution(curves)
    return JudgedClaim(
        text=text,
        verdict="undecided" if too_short else verdict(margins, resolution),
        measured=measured,
        # A margin that is not a number decides nothing and is not written down.
        margins=tuple(margin for margin in margins if np.isfinite(margin)),
        resolution=resolution,
        paper=claim.paper,
    )


def _lengths(criterion: Criterion, curves: Curves) -> list[str]:
    """At which lengths of training the claim holds, in a sentence; none if there is one length."""
    lengths = curves.lengths.tolist()
    if len(lengths) < 2:
        return []
    holding = []
    for length in lengths:
        so_far = curves.until(length)
        margins = criterion.judge(so_far)[0].tolist()
        holding.append(verdict(margins, criterion.resolution(so_far)) == "holds")
    if all(holding):
        return [f"Holds at every length from {lengths[0]:,} to {lengths[-1]:,} iterations."]
    if not any(holding):
        return [f"Holds at no length from {lengths[0]:,} to {lengths[-1]:,} iterations."]
    if holding[-1]:
        since = len(holding) - holding[::-1].index(False)
        return [f"Holds from {lengths[since]:,} iterations on."]
    last = lengths[len(holding) - 1 - holding[::-1].index(True)]
    return [f"Holds at {sum(holding)} of {len(holding)} lengths, the last {last:,} iterations."]


def _sentence(criterion: Criterion, numbers: Mapping[str, Floats]) -> str:
    """The numbers in a sentence; for several seeds, the smallest and the largest."""
    parts = []
    for name, found in numbers.items():
        ends = dict.fromkeys(f"{end:{criterion.form}}" for end in (found.min(), found.max()))
        parts.append(f"{name} {'…'.join(ends)}")
    heading = criterion.heading[0].upper() + criterion.heading[1:]
    return f"{heading}: {', '.join(parts)}."
