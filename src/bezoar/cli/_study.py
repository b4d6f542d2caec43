"""``bezoar study``: small sweeps that answer a question."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezoar import studies
from bezoar._options import choose
from bezoar.cli._screen import busy, console, print_page, print_path, training_progress
from bezoar.report import check_markdown
from bezoar.studies import STUDIES

#: What the name of everything stands for.
NAMES = {"all": tuple(STUDIES)} | {name: (name,) for name in STUDIES}


def study(given: Mapping[str, Any]) -> None:
    """Train the studies that were asked for, each in a folder of its own, and print their pages."""
    markdown: Path | None = given["markdown"]
    if markdown is not None:
        check_markdown(markdown)
    wanted = dict.fromkeys(part for name in given["names"] for part in choose("study", name, NAMES))
    defaults = {
        "seeds": studies.SEEDS,
        "samples": studies.SAMPLES,
        "iterations": studies.ITERATIONS,
    }
    options = {name: given[name] or default for name, default in defaults.items()}
    changed = [f" --{name} {options[name]}" for name in options if options[name] != defaults[name]]
    for name in wanted:
        chosen, folder = STUDIES[name], given["out"] / name
        with training_progress(chosen.title) as progress:
            found = studies.train_study(
                chosen, **options, workers=given["workers"], progress=progress
            )
        with busy(f"Drawing {name}"):
            command = f"bezoar study {name}{''.join(changed)}"
            page = studies.write_study(folder, chosen, found, command)
        console.rule(style="dim")
        print_page(page, folder)
    if markdown is not None:
        print_path("Page", studies.write_studies(markdown, given["out"], STUDIES))
