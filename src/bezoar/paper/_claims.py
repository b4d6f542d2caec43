"""Claims about figures, and what runs say of them.

A claim is judged seed by seed: a margin says by how much it holds, negative where it does not. It
*holds* if every seed's margin is above the resolution, *does not hold* if every seed's is below
minus the resolution, and is *undecided* at this number of seeds otherwise.

The resolution is what a run can tell at all. For accuracies it is 0.01: an accuracy of 0.5 … 0.9 on
10,000 test images has a standard error of 0.003 … 0.005, so equally good models may well differ by
that much. For sizes, whose margins are in powers of ten, it is 0.05: a factor of 1.12.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bezoar.paper._criteria import Criterion, Curves, Floats, MissingRunError
from bezoar.paper._settings import SETTINGS
from bezoar.report import JudgedClaim, Verdict

#: Where the paper speaks of a figure.
SECTIONS = {
    "fig1": "Section I, A Motivating Example",
    "fig2": "Section IV, scenario (i)",
    "fig4": "Section IV, scenario (i)",
    "fig5": "Section IV, scenario (ii)",
    "fig7": "Section IV, scenario (iii)",
}


@dataclass(frozen=True)
class Claim:
    """Something the paper says of a figure.

    Attributes:
        figure: of :data:`~bezoar.paper.SETTINGS`.
        text: the claim in one sentence, with the number it is judged by.
        criterion: how it is judged.
    """

    figure: str
    text: str
    criterion: Criterion

    @property
    def paper(self) -> str:
        """Where the paper says so."""
        return SECTIONS[self.figure]


def verdict(margins: Sequence[float], resolution: float) -> Verdict:
    """The verdict that follows from the margins of all seeds; undecided without margins."""
    if margins and all(margin > resolution for margin in margins):
        return "holds"
    if margins and all(margin < -resolution for margin in margins):
        return "does not hold"
    return "undecided"


def judge(claim: Claim, curves: Curves, iterations: int | None = None) -> JudgedClaim:
    """Judge a claim by the curves of its figure.

    Args:
        claim: what to judge.
        curves: the curves of its figure.
        iterations: how long the runs were trained, if not as long as the figure's.
    """
    text, full = claim.text, SETTINGS[claim.figure].iterations
    if iterations not in (None, full):
        text = f"{text.removesuffix('.')}; judged after {iterations:,} of {full:,} iterations."
    try:
        margin, numbers = claim.criterion.judge(curves)
        margins, measured = margin.tolist(), _sentence(claim.criterion, numbers)
    except MissingRunError as missing:
        margins, measured = [], f"Not judged: {missing}."
    return JudgedClaim(
        text=text,
        verdict=verdict(margins, claim.criterion.resolution),
        measured=measured,
        # A margin that is not a number decides nothing and is not written down.
        margins=tuple(margin for margin in margins if np.isfinite(margin)),
        resolution=claim.criterion.resolution,
        paper=claim.paper,
    )


def _sentence(criterion: Criterion, numbers: Mapping[str, Floats]) -> str:
    """The numbers in a sentence; for several seeds, the smallest and the largest."""
    parts = []
    for name, found in numbers.items():
        ends = dict.fromkeys(f"{end:{criterion.form}}" for end in (found.min(), found.max()))
        parts.append(f"{name} {'…'.join(ends)}")
    heading = criterion.heading[0].upper() + criterion.heading[1:]
    return f"{heading}: {', '.join(parts)}."
