"""Claims about figures, and what runs say of them.

A claim is judged seed by seed: a margin says by how much it holds, negative where it does not. It
*holds* if every seed's margin is above the resolution, *does not hold* if every seed's is below
minus the resolution, and is *undecided* at this number of seeds otherwise.

The resolution is what a run can tell at all. For accuracies it is 0.01: an accuracy of 0.5 … 0.9 on
10,000 test images has a standard error of 0.003 … 0.005, so equally good models may well differ by
that much. For sizes, whose margins are in powers of ten, it is 0.05: a factor of 1.12.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bezoar.experiments._findings import Findings, MissingRunError
from bezoar.experiments._judgements import Judgement
from bezoar.experiments._paper import DRAWN, SETTINGS

Outcome = Literal["holds", "does not hold", "undecided"]

#: Margins nearer to zero than this decide nothing: of accuracies, and in powers of ten.
ACCURACY, POWER = 0.01, 0.05


@dataclass(frozen=True)
class Claim:
    """Something the paper says of a figure.

    Attributes:
        figure: of :data:`~bezoar.experiments.SETTINGS`.
        text: the claim in one sentence, with the number it is judged by.
        paper: where the paper says so.
        judgement: how it is judged.
        resolution: margins nearer to zero decide nothing.
    """

    figure: str
    text: str
    paper: str
    judgement: Judgement
    resolution: float = ACCURACY


@dataclass(frozen=True)
class Judged:
    """A claim and what runs say of it.

    Attributes:
        claim: what was judged.
        text: its text, and after how many iterations where they are not the figure's.
        verdict: whether it holds.
        measured: the numbers behind the verdict, in one sentence.
        margins: by how much it holds, a number a seed; one where nothing is random.
    """

    claim: Claim
    text: str
    verdict: Outcome
    measured: str
    margins: tuple[float, ...]


def verdict(margins: Sequence[float], resolution: float) -> Outcome:
    """What the margins of all seeds come to; without margins nothing is decided."""
    if margins and all(margin > resolution for margin in margins):
        return "holds"
    if margins and all(margin < -resolution for margin in margins):
        return "does not hold"
    return "undecided"


def judge(claim: Claim, findings: Findings, iterations: int | None = None) -> Judged:
    """Judge a claim by runs.

    Args:
        claim: what to judge.
        findings: the runs of its figure. Where nothing that the claim is about is random, one
            seed is judged, for all of them.
        iterations: how long the runs were trained, if not as long as the figure's.
    """
    text, full = claim.text, SETTINGS[claim.figure].iterations
    if iterations not in (None, full):
        text = f"{text.removesuffix('.')}; judged after {iterations:,} of {full:,} iterations."
    drawn = not DRAWN.isdisjoint(claim.judgement.partitions)
    seeds = findings.seeds or (0,)
    try:
        seen = [findings.seen(seed) for seed in (seeds if drawn else seeds[:1])]
        margins = [claim.judgement.margin(one) for one in seen]
        measured = _sentence(claim.judgement, [claim.judgement.numbers(one) for one in seen])
    except MissingRunError as missing:
        return Judged(claim, text, "undecided", f"Not judged: {missing}.", ())
    # A margin that is no number decides nothing, and is nothing to write down.
    finite = tuple(margin for margin in margins if np.isfinite(margin))
    return Judged(claim, text, verdict(margins, claim.resolution), measured, finite)


def judge_all(
    claims: Iterable[Claim], figure: str, findings: Findings, iterations: int | None = None
) -> list[Judged]:
    """Judge the claims about a figure."""
    return [judge(claim, findings, iterations) for claim in claims if claim.figure == figure]


def _sentence(judgement: Judgement, numbers: Sequence[dict[str, float]]) -> str:
    """The numbers; of several seeds, from the smallest to the largest."""
    parts = []
    for name in numbers[0]:
        found = [of_seed[name] for of_seed in numbers]
        ends = dict.fromkeys(f"{end(found):{judgement.form}}" for end in (np.min, np.max))
        parts.append(f"{name} {'…'.join(ends)}")
    heading = judgement.heading[0].upper() + judgement.heading[1:]
    return f"{heading}: {', '.join(parts)}."
