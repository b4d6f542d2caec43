"""Results as a Markdown page: pictures, claims in every variant, and where they come from."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import get_args

from bezoar._files import write_whole
from bezoar._numbers import count
from bezoar.experiments import Store, StoredRun
from bezoar.paper._claims import JUDGED
from bezoar.paper._comparisons import Figure
from bezoar.paper._recipes import Scale, Variant, Whose
from bezoar.paper._trained import variant_name
from bezoar.report import (
    THRESHOLDS,
    Page,
    Table,
    check_markdown,
    markdown_pictures,
    page_folders,
    training_time,
)


def write_record(path: Path, results: Path, figures: Iterable[Figure]) -> Path:
    """Write figures, in all variants that a folder of results has, as a Markdown page.

    Copies of the pictures and of the data go into a folder beside the page, named like it. The
    results are what ``bezoar reproduce`` left.
    """
    check_markdown(path)
    runs = {run.key: run for run in Store(results / "store").runs(broken=lambda error: None)}
    blocks, folders = [f"# {path.stem}"], page_folders(results)
    for figure in figures:
        variants = (Variant(*both) for both in product(get_args(Scale), get_args(Whose)))
        names = dict.fromkeys(variant_name(figure, variant) for variant in variants)
        there = (results / name for name in names if results / name in folders)
        pages = [Page.load(folder, runs.get) for folder in there]
        blocks += [f"## {figure.title}", *_claims(pages)]
        for page in pages:
            blocks += _page(page, path, results)
    return write_whole(path, ("\n\n".join(blocks) + "\n").encode())


def _claims(pages: Sequence[Page]) -> list[str]:
    """A table of every claim, with its verdict and the numbers behind it in each variant."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for page in pages:
        for claim in page.claims:
            text, _, how = claim.text.removesuffix(".").partition(JUDGED)
            row = (page.name, how, claim.verdict, claim.measured)
            found.setdefault(f"{text}.", []).append(row)
    rows = [(text, *row) for text, several in found.items() for row in several]
    table = Table.of("", ("claim", "results", "judged", "verdict", "measured"), rows)
    return [table.markdown().rstrip(), THRESHOLDS] if rows else []


def _page(page: Page, path: Path, results: Path) -> list[str]:
    """The pictures of a variant, what it shows, what it was computed with, and its data."""
    blocks = [f"### {page.name}: {page.title}", page.caption]
    blocks += markdown_pictures(page, results / page.name, path)
    runs = [run for panel in page.panels for curve in panel.curves for run in curve.runs]
    told = [f"`{page.command}`", *_provenance([r for r in runs if isinstance(r, StoredRun)])]
    if page.missing:
        told.append(f"{count(len(page.missing), 'run')} no longer in the store, or damaged")
    for name in page.data:
        write_whole(path.with_suffix("") / name, (results / page.name / name).read_bytes())
        told.append(f"every measurement: [{name}]({path.stem}/{name})")
    return [*blocks, "\n".join(f"- {line}" for line in told)]


def _provenance(runs: Sequence[StoredRun]) -> Iterator[str]:
    """When and with what runs were computed."""
    if not runs:
        return
    when, seconds = training_time(runs)
    yield count(len(runs), "run") + (f", trained {when}, {seconds} in all" if when else "")
    for what in ("versions", "machine"):
        several = (run.provenance.get(what, {}).items() for run in runs)
        texts = dict.fromkeys(", ".join(f"{k} {v}" for k, v in facts) for facts in several)
        yield from filter(None, texts)
