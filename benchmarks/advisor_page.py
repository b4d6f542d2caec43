"""The page of the advisor's study, its picture, and the table that the package ships."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import fill

import numpy as np

from benchmarks.advisor_cases import BASIC, ESTIMATING, FIELD, PARTITIONS
from benchmarks.advisor_results import (
    PILOTS,
    RESULTS,
    Accuracies,
    Key,
    by_case,
    read_pilots,
    read_results,
)
from benchmarks.advisor_ways import (
    ADVISOR,
    ALONE,
    BY_PILOTS,
    GOOD,
    RANDOM,
    WAYS,
    Pilots,
    all_asked,
    going_on,
    losses,
    untrained,
)
from bezoar.advice import Study
from bezoar.advice._regret import SMALL
from bezoar.advice._study import AGENTS
from bezoar.paper import RULES
from bezoar.report import Table, pictures, save_figure

PAGE, PICTURE = Path("docs/results/advisor.md"), Path("docs/results/advisor.png")

#: The table that the advisor knows.
SHIPPED = Path("src/bezoar/advice/study.csv")

MEAN = "always the plain mean"

#: The ways that are drawn, with their colours and lines.
DRAWN = {
    ADVISOR: ("#0072B2", "-"),
    ALONE: ("#56B4E9", "--"),
    MEAN: ("#D55E00", "-"),
    "the best rule of other families, same partition": ("#009E73", "-."),
    "always the weighted mean": ("#CC79A7", ":"),
}

#: What each way lost in each case.
Lost = Mapping[Key, Mapping[str, float]]


def write() -> str:
    """Write the page, the picture and the shipped table from the files of results."""
    cases, pilots = by_case(read_results(RESULTS)), read_pilots(PILOTS)
    lost = losses(cases, pilots)
    asked = {key: found for key, found in lost.items() if ADVISOR in found}
    tables = [
        _ways(
            f"The {len(asked)} cases that the advisor was asked about",
            asked,
            [ALONE, ADVISOR, *BY_PILOTS, *(way for way in WAYS if way != ALONE), RANDOM],
        ),
        *([_ways(f"All {len(lost)} cases", lost, [*WAYS, RANDOM])] if asked != lost else []),
        _groups("By partition", asked, lost, lambda key: key.partition),
        _groups("By family", asked, lost, lambda key: key.family),
        _field(cases),
        _estimates(cases),
    ]
    _draw(asked)
    SHIPPED.write_text(Study.of((key.partition, found) for key, found in cases.items()).text())
    PAGE.write_text(_text(cases, pilots, asked, tables))
    return f"{tables[0].title}\n{tables[0].markdown()}"


def _text(
    cases: Mapping[Key, Accuracies],
    pilots: Mapping[tuple[str, str], Pilots],
    asked: Lost,
    tables: Iterable[Table],
) -> str:
    networks, families = {key.network for key in cases}, {key.family for key in cases}
    trained = {key for key, found in cases.items() if set(FIELD) <= found.keys()}
    about = (
        f"`python -m benchmarks.advisor` trains rules in full in {len(cases)} cases on "
        f"{len(networks)} networks of {len(families)} families with {AGENTS[0]} to {AGENTS[1]} "
        "agents (softmax regression, 6,000 images of MNIST, 300 iterations, a tenth of the agents "
        "poisoned). The advisor is told the network, the number of poisoned agents and the "
        "partition, not their places nor the attack; one of the four attacks is none that it "
        "tries. What it knows from the study comes from other families than the one it is asked "
        "about, and so does what other ways know. A choice is good if it loses at most "
        f"{GOOD:g} of the agents' mean accuracy against the best of all rules that were trained in "
        "the case."
    )
    picture = "![The share of asked cases in which a way to choose loses at most this](advisor.png)"
    limits = _limits(cases, pilots, len(asked), len(trained))
    parts = ["# Is the advisor's advice good?", *(fill(text, 100) for text in (about, *limits))]
    parts += [picture, *(f"## {table.title}\n\n{table.markdown().rstrip()}" for table in tables)]
    return "\n\n".join(parts) + "\n"


def _limits(
    cases: Mapping[Key, Accuracies],
    pilots: Mapping[tuple[str, str], Pilots],
    asked: int,
    trained: int,
) -> list[str]:
    """What follows from the numbers, and what they cannot carry."""
    others = len(untrained(cases, pilots))
    differ, kept, now = _tried_on(cases, pilots)
    told = [
        "By default the advisor answers from the study alone, of which the package has a table. "
        "With a budget it trains pilots, too. Both rank rules by minimax regret: by what a rule "
        "lost at most in the study's cases with that partition, or in the pilots; rules within "
        f"{SMALL:g} of the least are tied and go by what they lost on average. Among rules that "
        "are tied in the pilots, what they lost on average in the study counts as much. "
        "Four rows rank in other ways: by the pilots alone; by what a rule lost at most in the "
        "pilots or in the study, with ties going by the pilots; and by the root mean square of "
        "losses, in the pilots or in the study. In the second way a rule that the study does not "
        "know can hardly come first, however well it does in the pilots.",
        "Choices were made with these cases in view, so small differences between the advisor, "
        "the study alone and those four rows are no evidence. How pilots and the study are ranked "
        "is one of some twenty ways that were tried with families held out; all of them were good "
        "in 92% to 94% of the cases. The advisor's worst loss is smaller with pilots than without "
        "because of three cases: torus-40 with by_class, and torus-10 and fan-10 with a Dirichlet "
        "partition. And rules that were not trained in half of the cases count in the study as its "
        "median rule does, since the advisor had recommended such rules in 34 cases, with less "
        "success (90.6% were good).",
        "The pilots that are kept were trained when the advisor ranked by root mean squares. So "
        "the six rules that were tried on after the first scenario are not always those that "
        f"would be now ({differ:.1f} of six differ on average). Among those six there was a good "
        f"rule in {kept:.1%} of the cases, and among the six of now in {now:.1%}.",
    ]
    if asked < len(cases):
        told.append(
            f"The advisor was asked about {asked} of {len(cases)} cases so far, those with a "
            "Dirichlet partition and few agents first. They are no fair sample, so how often it "
            "is right in all cases is not known."
        )
    if others:
        told.append(
            f"In {others} cases it recommends a rule that was not trained there yet; the first of "
            "its ranking that was trained counts instead."
        )
    told.append(
        "Of the field's rules, those with fewer than 64 cases in the table below were trained only "
        "where the advisor's pilots had put them first, which favours them."
    )
    if trained < len(cases):
        told.append(
            f"The nine rules of the field were trained in {trained} cases so far. Four of them "
            "(torus-10, fan-10, scale_free-10 and two_castle-10 with a Dirichlet partition) were "
            "picked because the means did badly there, which favours the field's rules; the "
            "others, with a Dirichlet partition and at most 40 agents too, come in an order drawn "
            "from their names."
        )
    return told


def _tried_on(
    cases: Mapping[Key, Accuracies], pilots: Mapping[tuple[str, str], Pilots]
) -> tuple[float, float, float]:
    """How many of the rules that pilots tried on would not be now, and how often one was good.

    Returns:
        The number on average, and the shares of cases with a good rule among those that were tried
        on, and among those that would be.
    """
    found = []
    for asked in all_asked(cases, pilots):
        if asked.pilots is not None:
            here, (kept, now) = cases[asked.key], going_on(asked)
            enough = max(here.values()) - GOOD
            good = (any(here.get(rule, 0) >= enough for rule in rules) for rules in (kept, now))
            found.append((len(now - kept), *good))
    differ, kept_good, now_good = np.mean(found, axis=0).tolist()
    return differ, kept_good, now_good


def _numbers(found: Iterable[float]) -> tuple[str, str, str]:
    """The share of good choices, the mean and the largest loss."""
    lost = np.array(list(found))
    if not lost.size:
        return "–", "–", "–"
    return f"{np.mean(lost <= GOOD):.1%}", f"{lost.mean():.4f}", f"{lost.max():.3f}"


def _ways(title: str, lost: Lost, ways: Iterable[str]) -> Table:
    rows = [(way, *_numbers(found[way] for found in lost.values())) for way in ways]
    return Table.of(title, ("way to choose", "good", "mean loss", "worst loss"), rows)


def _groups(title: str, asked: Lost, lost: Lost, of: Callable[[Key], str]) -> Table:
    """The advisor where it was asked, and simpler ways in all cases."""
    rows = []
    for group in dict.fromkeys(of(key) for key in lost):
        here = [found for key, found in lost.items() if of(key) == group]
        told = [found[ADVISOR] for key, found in asked.items() if of(key) == group]
        others = ("/".join(_numbers(found[way] for found in here)) for way in (ALONE, MEAN))
        rows.append((group, str(len(told)), "/".join(_numbers(told)), str(len(here)), *others))
    columns = (title[3:], "asked", ADVISOR, "all cases", "the study alone", MEAN)
    return Table.of(f"{title}: good, mean and worst loss", columns, rows)


def _field(cases: Mapping[Key, Accuracies]) -> Table:
    """What the field's rules gain against the best of the paper's eight in each case."""
    rows = []
    for rule in dict.fromkeys((*FIELD, *_recommended(cases))):
        for partition in PARTITIONS:
            gains = {
                key: found[rule] - max(a for text, a in found.items() if _is_papers(text))
                for key, found in cases.items()
                if rule in found and key.partition == partition
            }
            if gains:
                gained = np.array(list(gains.values()))
                best = max(gains, key=lambda key: gains[key])
                where = f"{gained.max():+.3f} ({best.network}, {best.attack})"
                counts = (str(int(n)) for n in ((gained > GOOD).sum(), (gained < -GOOD).sum()))
                row = (rule, partition, str(len(gained)), f"{gained.mean():+.3f}", *counts, where)
                rows.append(row)
    columns = ("rule", "partition", "cases", "mean", "ahead", "behind", "at best")
    title = (
        f"The field's rules against the best of the paper's eight (ahead: by more than {GOOD:g})"
    )
    return Table.of(title, columns, rows)


def _recommended(cases: Mapping[Key, Accuracies]) -> list[str]:
    """Rules of the field that were trained only where pilots put them first."""
    known = {name.partition(":")[0] for name in (*BASIC, *ESTIMATING)}
    found = {text for accuracies in cases.values() for text in accuracies}
    return sorted(text for text in found if text.partition(":")[0] not in known)


def _is_papers(text: str) -> bool:
    return text.partition(":")[0] in RULES and text not in FIELD


def _estimates(cases: Mapping[Key, Accuracies]) -> Table:
    """What rules lose if agents take as many inputs for poisoned as there are poisoned agents."""
    rows = []
    for name in ("trimmed_mean", "faba", "ios", "krum"):
        one = f"{name}:estimate=up_to_1"
        for partition in PARTITIONS:
            gains = [
                accuracy - found[one]
                for key, found in cases.items()
                if key.partition == partition
                for text, accuracy in found.items()
                if text.startswith(f"{name}:estimate=up_to_") and "," not in text and text != one
            ]
            ahead = str(sum(gain > GOOD for gain in gains))
            rows.append((name, partition, str(len(gains)), f"{np.mean(gains):+.3f}", ahead))
    columns = ("rule", "partition", "cases", "mean gain", "ahead")
    return Table.of("Assuming more than one poisoned input", columns, rows)


def _draw(lost: Lost) -> None:
    """For each way, the share of cases that lose at most so much."""
    with pictures() as plt:
        figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
        for way, (colour, line) in DRAWN.items():
            found = np.sort([one[way] for one in lost.values()])
            share = np.arange(1, len(found) + 1) / len(found)
            axes.step(found, share, line, where="post", color=colour, label=way)
        axes.axvline(GOOD, color="#888888", linewidth=0.8)
        axes.set_xlim(0, 0.15)
        axes.set_ylim(0.4, 1.01)
        axes.set_xlabel("accuracy lost against the best rule of the case")
        axes.set_ylabel("share of cases that lose at most this")
        axes.legend(loc="lower right")
        save_figure(figure, PICTURE)
