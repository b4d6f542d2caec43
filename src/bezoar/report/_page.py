"""What is shown: curves in panels, tables, claims, and the pages made of them."""

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError

from bezoar._arrays import Floats, Ints
from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar._options import first_problem
from bezoar.experiments import Choice, StoredRun, spec_of

if TYPE_CHECKING:
    from bezoar.networks import Network
    from bezoar.training import History

#: The name of a page's file in the folder of a figure or table.
SUMMARY = "summary.json"

#: The format that is written, and the newest that can be read.
FORMAT: Literal[1] = 1

#: Where the numbers in claims come from. This stands beside all claims.
THRESHOLDS = (
    "The paper says near, comparable or severe, without numbers. The numbers in these sentences, "
    "such as 0.05, are Bezoar's."
)

#: The endings of the names of pictures.
PICTURES = (".png", ".pdf", ".svg")

Verdict = Literal["holds", "does not hold", "undecided"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

#: A cell with a number, perhaps with a unit or a range; or with what stands in place of a number.
_NUMBER = re.compile(
    r"[-−+]?[\d.,]+(e[-+]?\d+)?([ …/()±]+[\d.,]+(e[-+]?\d+)?)*\)?( ξ²| %)?"
    r"|[–·∞]|inf|diverged|failed|exact|none|"
)


@dataclass(frozen=True, eq=False)
class Curve:
    """Runs that differ only in their seeds: drawn as their mean, with a band over their range.

    Attributes:
        rule: the aggregator's name, or ``"baseline"``.
        runs: at least one, stored or just trained.
        options: the aggregator's options as they are typed.
    """

    rule: str
    runs: "tuple[StoredRun | History, ...]"
    options: str = ""

    @classmethod
    def of(cls, choice: Choice, runs: "Iterable[StoredRun | History]", rule: str = "") -> "Curve":
        """The curve of runs with this aggregator; ``rule`` is a name to take instead of its own."""
        options = str(choice).removeprefix(choice.name).removeprefix(":")
        return cls(rule or choice.name, tuple(runs), options)

    @classmethod
    def stored(cls, runs: Iterable[StoredRun], rule: str = "") -> "Curve":
        """The curve of finished runs, in the order of their seeds; ``rule`` as for :meth:`of`."""
        ordered = sorted(runs, key=lambda run: (spec_of(run).seed, run.key))
        return cls.of(spec_of(ordered[0]).aggregator, ordered, rule)

    @property
    def name(self) -> str:
        """The rule and its options as they are typed."""
        return f"{self.rule}:{self.options}" if self.options else self.rule

    @cached_property
    def iterations(self) -> Ints:
        """``[n]`` the iterations after which all runs were measured."""
        return reduce(np.intersect1d, (run.iterations for run in self.runs))

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that all runs have."""
        return [name for name in self.runs[0].metrics if all(name in r.metrics for r in self.runs)]

    def values(self, metric: str) -> Floats:
        """``[runs, n]`` a metric of every run."""
        kept = self.iterations
        return np.stack([run[metric][np.isin(run.iterations, kept)] for run in self.runs])

    def mean(self, metric: str) -> Floats:
        """``[n]`` the mean over the runs."""
        mean: Floats = self.values(metric).mean(axis=0)
        return mean

    def limits(self, metric: str) -> tuple[Floats, Floats]:
        """``[n]`` and ``[n]``: the smallest and the largest value of the runs."""
        values = self.values(metric)
        return values.min(axis=0), values.max(axis=0)

    @property
    def diverged(self) -> bool:
        """Whether some run ended with models that are not finite."""
        return any(run.diverged for run in self.runs)


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves that are drawn in the same axes.

    Attributes:
        title: the text above them.
        curves: the curves.
        network: the network to draw beside them, if any.
    """

    title: str
    curves: tuple[Curve, ...] = ()
    network: "Network | None" = None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Image(_Part):
    """A picture beside a page's file, and a text for those who cannot see it."""

    file: str
    alt: str


class Table(_Part):
    """A table, with its cells as they are printed.

    Attributes:
        title: the text above it.
        columns: the headings.
        rows: the cells; the first cell of a row names the row.
        shaded: how many columns after the first are shaded, darker where numbers are larger.
        marked: the cells with the best values, by row and column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shaded: int = Field(default=0, exclude=True)
    marked: frozenset[tuple[int, int]] = Field(default=frozenset(), exclude=True)

    @classmethod
    def of(
        cls, title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], **more: Any
    ) -> "Table":
        """A table of any rows; ``more`` are its other fields."""
        return cls(title=title, columns=tuple(columns), rows=tuple(map(tuple, rows)), **more)

    def turned(self) -> "Table":
        """It with its rows as columns; the first heading is left out."""
        columns, *rows = zip(self.columns, *self.rows, strict=True)
        marked = frozenset((column - 1, row + 1) for row, column in self.marked)
        return self.of(self.title, ("", *columns[1:]), rows, marked=marked)

    def is_numeric(self, column: int) -> bool:
        """Whether a column has numbers, which are aligned to the right."""
        cells = [row[column].strip() for row in self.rows]
        return any(cells) and all(map(_NUMBER.fullmatch, cells))

    def shades(self) -> list[list[float]]:
        """For each row, each shaded cell's number divided by the largest of all."""
        texts = [[cell.replace(",", "") for cell in row[1 : 1 + self.shaded]] for row in self.rows]
        numbers = [[int(text) if text.isdecimal() else 0 for text in row] for row in texts]
        largest = max((number for row in numbers for number in row), default=0) or 1
        return [[number / largest for number in row] for row in numbers]

    def markdown(self) -> str:
        """It without its title, as Markdown has tables."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
        return "".join(f"| {' | '.join(line)} |\n" for line in escaped)

    def save(self, stem: Path) -> tuple[str, ...]:
        """Write ``stem.csv`` for machines and ``stem.md`` for people; returns their names."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        contents = {f"{stem.name}.csv": text.getvalue(), f"{stem.name}.md": self.markdown()}
        for name, content in contents.items():
            write_whole(stem.with_name(name), content.encode())
        return tuple(contents)


class JudgedClaim(_Part):
    """A claim of the paper, judged by what was measured.

    Attributes:
        text: the claim, in one sentence.
        verdict: whether it holds here.
        measured: the numbers that decided, in one sentence.
        margins: for each seed, by how much the claim holds; negative where it does not.
        resolution: a margin closer to zero than this decides nothing.
        paper: the place in the paper.
    """

    text: str
    verdict: Verdict
    measured: str
    margins: tuple[float, ...]
    resolution: float
    paper: str = ""


class RunOfPage(_Part):
    """The key of a run, with the panel and the rule of its curve."""

    key: str
    panel: str
    rule: str


class Page(_Part):
    """A figure, a table, the runs of a store, or the theory of a network.

    Attributes:
        name: the name for ``bezoar reproduce``, and of the folder.
        title: a heading.
        caption: what is shown, in sentences.
        command: the command that makes it again.
        images, data: files beside the page's own.
        tables: the numbers.
        claims: the paper's claims, with verdicts.
        metrics: the metrics to show of its curves, the most important first.
        curves: in a page's file, the runs of its panels.
        panels: the curves; not in the file.
        missing: keys of runs that the file names and that could not be found or read.
    """

    format: Literal[1] = FORMAT
    name: str
    title: str
    caption: str = ""
    command: str = ""
    images: tuple[Image, ...] = ()
    data: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()
    metrics: tuple[str, ...] = ()
    curves: tuple[RunOfPage, ...] = ()
    panels: tuple[InstanceOf[Panel], ...] = Field(default=(), exclude=True)
    missing: tuple[str, ...] = Field(default=(), exclude=True)

    def verdicts(self) -> dict[Verdict, int]:
        """The number of claims with each verdict, without verdicts that no claim has."""
        found = [claim.verdict for claim in self.claims]
        return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}

    def save(self, folder: Path) -> "Page":
        """Write it into the folder, and return it."""
        curves = [
            RunOfPage(key=run.key, panel=panel.title, rule=curve.rule)
            for panel in self.panels
            for curve in panel.curves
            for run in curve.runs
            if hasattr(run, "key")
        ]
        document = self.model_copy(update={"curves": tuple(curves)}).model_dump(mode="json")
        content = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        write_whole(folder / SUMMARY, content.encode())
        return self

    @classmethod
    def load(
        cls, folder: Path, find: Callable[[str], StoredRun | None] = lambda key: None
    ) -> "Page":
        """The page in a folder; ``find`` gives the run with a key, or ``None``."""
        path = folder / SUMMARY
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BezoarError(f"{path}: it is not valid JSON: {error}") from None
        found = document.get("format") if isinstance(document, dict) else None
        if isinstance(found, int) and found > FORMAT:
            raise BezoarError(
                f"{path}: it has format {found}, this version of bezoar knows formats up to "
                f"{FORMAT}; a newer bezoar reads it"
            )
        try:
            page = cls.model_validate(document)
        except ValidationError as error:
            raise BezoarError(f"{path}: {first_problem(error, 'summary')}") from None
        runs: dict[str, dict[tuple[str, Choice], list[StoredRun]]] = {}
        missing: dict[str, None] = {}
        for curve in page.curves:
            if run := find(curve.key):
                same = (curve.rule, spec_of(run).aggregator)
                runs.setdefault(curve.panel, {}).setdefault(same, []).append(run)
            else:
                missing[curve.key] = None
        panels = tuple(
            Panel(title, tuple(Curve.stored(several, rule) for (rule, _), several in shown.items()))
            for title, shown in runs.items()
        )
        update = {"panels": panels, "missing": tuple(missing), "curves": ()}
        return page.model_copy(update=update)


def check_picture(path: Path | None) -> None:
    """Refuse, before anything is computed, a picture that could not be saved."""
    if path is not None:
        _check_file("plot", path, PICTURES)


def check_markdown(path: Path) -> None:
    """Refuse, before anything is computed, a Markdown page that could not be saved."""
    _check_file("markdown", path, (".md",))


def _check_file(field: str, path: Path, endings: Sequence[str]) -> None:
    if path.suffix.lower() not in endings:
        raise BezoarError(
            f"{field}: expected a name that ends in {', '.join(endings)}, found {str(path)!r}"
        )
    if path.is_dir():
        raise BezoarError(f"{field}: expected a file to write, found the folder {path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BezoarError(
            f"{field}: cannot make the folder {path.parent}: {error.strerror}"
        ) from None
    if not os.access(path.parent, os.W_OK):
        raise BezoarError(f"{field}: cannot write into the folder {path.parent}")


def markdown_pictures(page: Page, folder: Path, path: Path) -> list[str]:
    """A page's PNG pictures, copied from its folder to one beside the Markdown page at a path."""
    blocks = []
    for image in (image for image in page.images if image.file.endswith(".png")):
        write_whole(path.with_suffix("") / image.file, (folder / image.file).read_bytes())
        blocks.append(f"![{image.alt}]({path.stem}/{image.file})")
    return blocks


def page_folders(results: Path) -> list[Path]:
    """The folders with a page under a folder of results, fig2 before fig10."""

    def by_number(folder: Path) -> list[int | str]:
        parts = re.split(r"(\d+)", folder.name)  # text, number, text, …
        return [int(part) if place % 2 else part for place, part in enumerate(parts)]

    return sorted((path.parent for path in results.glob(f"*/{SUMMARY}")), key=by_number)


def thinned(count: int, most: int) -> Ints:
    """The indices of at most ``most`` of ``count`` points, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
