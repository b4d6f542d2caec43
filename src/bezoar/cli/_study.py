"""``bezoar study``. What takes long to import is imported when it is needed."""

from pathlib import Path
from typing import Annotated

import typer

from bezoar.cli._options import DataDir, Workers


def study(
    names: Annotated[
        list[str],
        typer.Argument(
            help="adaptive, worst_labels, over_time, placement, estimate, momentum, threat, or all."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where results go.")] = Path("results/studies"),
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds. Default: 3.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Training images, drawn by the seed. Default: 1000.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="How long to train. Default: 300.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a page of all studies in that folder here.")
    ] = None,
    data_dir: DataDir = None,
    workers: Workers = None,
) -> None:
    """Answer a question about rules or attacks by a small sweep."""
    from bezoar import studies
    from bezoar._options import choose
    from bezoar.cli._screen import busy, console, print_page, print_path, training_progress
    from bezoar.report import check_markdown
    from bezoar.studies import ITERATIONS, SAMPLES, SEEDS, STUDIES

    if markdown is not None:
        check_markdown(markdown)
    known = {"all": tuple(STUDIES)} | {name: (name,) for name in STUDIES}
    wanted = dict.fromkeys(part for name in names for part in choose("study", name, known))
    defaults = {"seeds": SEEDS, "samples": SAMPLES, "iterations": ITERATIONS}
    given = {"seeds": seeds, "samples": samples, "iterations": iterations}
    options = {name: given[name] or default for name, default in defaults.items()}
    changed = [f" --{name} {options[name]}" for name in options if options[name] != defaults[name]]
    for name in wanted:
        chosen, folder = STUDIES[name], out / name
        with training_progress(chosen.title) as progress:
            found = studies.train_study(chosen, **options, workers=workers, progress=progress)
        with busy(f"Drawing {name}"):
            command = f"bezoar study {name}{''.join(changed)}"
            page = studies.write_study(folder, chosen, found, command)
        console.rule(style="dim")
        print_page(page, folder)
    if markdown is not None:
        print_path("Page", studies.write_studies(markdown, out, STUDIES))
