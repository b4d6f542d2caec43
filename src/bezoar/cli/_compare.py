"""``bezoar compare``."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bezoar.advice import compare
from bezoar.cli._options import check_picture
from bezoar.cli._run import train_shown
from bezoar.cli._screen import (
    console,
    duration,
    print_json,
    print_meanings,
    print_page,
    print_path,
)
from bezoar.experiments import RunSpec
from bezoar.report import panels_figure, shown_first


def compare_rules(
    options: Mapping[str, Any],
    rules: Sequence[str],
    store: Path | None,
    workers: int | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Train all rules on a network and print which comes first.

    Options with the name of a field of a spec are that field; so are those of a comparison.
    """
    check_picture(plot)
    names = {*RunSpec.model_fields, "seeds", "metric", "estimate"}
    given = {name: options[name] for name in names if options.get(name) is not None}
    before = time.perf_counter()
    train = partial(train_shown, store=store, workers=workers)
    found = compare(rules=rules or "all", train=train, **given)
    seconds = time.perf_counter() - before
    if plot:
        metrics = dict.fromkeys([found.metric.name, *shown_first(found.baseline.curve.runs)[:2]])
        panels_figure(plot, [found.panel], list(metrics), found.note)
    if json:
        print_json(found.document() | {"seconds": round(seconds, 3)})
        return
    page = found.page()
    print_page(page)
    print_meanings(page.tables[0].columns)
    console.print(f"Trained in {duration(seconds)}.", style="dim")
    console.print(f"Answer: {found.answer}", style="bold", markup=False)
    if plot:
        print_path("Picture", plot)
