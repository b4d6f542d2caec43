"""``bezoar compare``."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bezoar._numbers import duration
from bezoar.advice import compare
from bezoar.cli._options import spec_fields
from bezoar.cli._run import train_shown
from bezoar.cli._screen import (
    console,
    print_json,
    print_meanings,
    print_page,
    print_path,
)
from bezoar.report import check_picture, panels_figure, shown_first


def compare_rules(given: Mapping[str, Any]) -> None:
    """Train all rules on a network and print which comes first; ``given`` is what was typed."""
    plot: Path | None = given["plot"]
    check_picture(plot)
    own = {name: given[name] for name in ("seeds", "metric", "estimate") if given[name] is not None}
    before = time.perf_counter()
    train = partial(train_shown, store=given["store"], workers=given["workers"])
    found = compare(rules=given["rules"] or "all", train=train, **own, **spec_fields(given))
    seconds = time.perf_counter() - before
    if plot:
        metrics = dict.fromkeys([found.metric.name, *shown_first(found.baseline.curve.runs)[:2]])
        panels_figure(plot, [found.panel], list(metrics), found.note)
    if given["json"]:
        print_json(found.document() | {"seconds": round(seconds, 3)})
        return
    page = found.page()
    print_page(page)
    print_meanings(page.tables[0].columns)
    console.print(f"Trained in {duration(seconds)}.", style="dim")
    console.print(f"Answer: {found.answer}", style="bold", markup=False)
    if plot:
        print_path("Picture", plot)
