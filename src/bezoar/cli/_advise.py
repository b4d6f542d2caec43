"""``bezoar advise``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from bezoar._errors import BezoarError
from bezoar.advice import advice_figure, advice_page, advise
from bezoar.cli._screen import console, print_json, print_page, print_path, time_bar
from bezoar.report import check_picture

#: Seconds in the units of a budget.
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def show_advice(given: Mapping[str, Any]) -> None:
    """Recommend a rule for a network, with reasons; ``given`` is what was typed."""
    plot: Path | None = given["plot"]
    poisoned, budget = read_number(given["poisoned"]), read_budget(given["budget"])
    effort = read_effort(given["effort"])
    check_picture(plot)
    with time_bar("advising") as progress:
        advice = advise(
            given["network"],
            poisoned,
            partition=given["partition"],
            dataset=given["dataset"] or "mnist",
            threat=given["threat"],
            rules=given["aggregator"] or (),
            budget=budget,
            effort=effort,
            seed=given["seed"],
            workers=given["workers"],
            progress=progress,
        )
    if plot:
        advice_figure(plot, advice)
    if given["json"]:
        print_json(advice.document())
        return
    print_page(advice_page(advice))
    console.print(Text("Why", style="bold"))
    for reason in advice.reasons:
        console.print(f"- {reason}", markup=False)
    for rule, reason in advice.impossible.items():
        console.print(f"Not possible here: {rule}: {reason}", markup=False, style="dim")
    if plot:
        print_path("Picture", plot)


def read_number(text: str) -> int | tuple[int, int] | None:
    """``"2"`` as a number, ``"1-4"`` as a range, ``"unknown"`` as nothing."""
    if text == "unknown":
        return None
    if found := re.fullmatch(r"(\d+)(?:-(\d+))?", text):
        first, last = found.groups()
        return int(first) if last is None else (int(first), int(last))
    raise BezoarError(
        f"poisoned: expected a number such as 2, a range such as 1-4, or unknown; found {text!r}"
    )


def read_budget(text: str | None) -> float | None:
    """Seconds from ``"300"``, ``"90s"``, ``"5m"`` or ``"1h"``."""
    if text is None:
        return None
    if found := re.fullmatch(r"(\d+(?:\.\d+)?) ?([smh]?)", text.strip()):
        number, unit = found.groups()
        return float(number) * UNITS[unit]
    raise BezoarError(f"budget: expected a time such as 90s, 5m or 1h, found {text!r}")


def read_effort(text: str | None) -> tuple[int, int] | None:
    """Scenarios and iterations from ``"24x200"``."""
    if text is None:
        return None
    if found := re.fullmatch(r"(\d+)x(\d+)", text.strip()):
        scenarios, iterations = found.groups()
        return int(scenarios), int(iterations)
    raise BezoarError(f"effort: expected scenarios and iterations such as 24x200, found {text!r}")
