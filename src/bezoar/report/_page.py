"""Pages: what is printed on the terminal, kept as a file, and shown in the HTML report."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError

from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar.report._curves import Curve, Panel

if TYPE_CHECKING:
    from bezoar.experiments import StoredRun

#: The name of a page's file in the folder of a figure or table.
SUMMARY = "summary.json"

#: The version of files that this code writes and the newest that it reads.
FORMAT: Literal[1] = 1

Verdict = Literal["holds", "does not hold", "undecided"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

#: A cell with a number, perhaps with a unit and extremes, or with a word in the place of one.
_NUMBER = re.compile(
    r"[-−+]?[\d.,]+(e[-+]?\d+)?([ …/()]+[\d.,]+(e[-+]?\d+)?)*\)?( ξ²| %)?"
    r"|[–·∞]|inf|diverged|failed|exact|none|"
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Image(_Part):
    """A picture beside a page's file, and what it shows for those who cannot see it."""

    file: str
    alt: str


class Table(_Part):
    """A table, its cells as they are printed.

    Attributes:
        title: what to write above it.
        columns: the headings.
        rows: the cells; the first of a row says what the row is about.
        shaded: of how many columns after the first larger numbers are darker.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shaded: int = Field(default=0, exclude=True)

    @classmethod
    def of(cls, title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> "Table":
        """A table of any rows."""
        return cls(title=title, columns=tuple(columns), rows=tuple(map(tuple, rows)))

    def is_numeric(self, column: int) -> bool:
        """Whether a column has numbers, which are set flush right."""
        cells = [row[column].strip() for row in self.rows]
        return any(cells) and all(map(_NUMBER.fullmatch, cells))

    def shades(self) -> list[list[float]]:
        """For each row the shaded cells' shares of the largest number."""
        texts = [[cell.replace(",", "") for cell in row[1 : 1 + self.shaded]] for row in self.rows]
        numbers = [[int(text) if text.isdecimal() else 0 for text in row] for row in texts]
        largest = max((number for row in numbers for number in row), default=0) or 1
        return [[number / largest for number in row] for row in numbers]

    def save(self, stem: Path) -> tuple[str, ...]:
        """Write ``stem.csv`` for machines and ``stem.md`` for people; returns their names."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
        markdown = "".join(f"| {' | '.join(line)} |\n" for line in escaped)
        contents = {f"{stem.name}.csv": text.getvalue(), f"{stem.name}.md": markdown}
        for name, content in contents.items():
            write_whole(stem.with_name(name), content.encode())
        return tuple(contents)


class JudgedClaim(_Part):
    """A claim of the paper with what was measured.

    Attributes:
        text: the claim, in one sentence.
        verdict: whether it holds here.
        measured: the numbers it was judged by, in one sentence.
        margins: by how much it holds, a number for each seed; negative where it does not.
        resolution: a margin nearer to zero than this decides nothing.
        paper: where the paper says so.
    """

    text: str
    verdict: Verdict
    measured: str
    margins: tuple[float, ...]
    resolution: float
    paper: str = ""


class _CurveInFile(_Part):
    """A run of a panel, as a page's file names it."""

    key: str
    panel: str
    rule: str


class Page(_Part):
    """A figure, a table, the runs of a store, or what the theory says of a network.

    Attributes:
        name: as given to ``bezoar reproduce``, and the name of the folder.
        title: a heading.
        caption: what to see.
        command: what makes it again.
        images, data: files beside the page's own.
        tables: what there is in numbers.
        claims: what the paper claims, with verdicts.
        metrics: what it shows of its curves, the most important first.
        panels: the curves; a file has the keys of their runs.
        missing: keys of runs that the file names and the store does not have.
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
    panels: tuple[InstanceOf[Panel], ...] = Field(default=(), exclude=True)
    missing: tuple[str, ...] = Field(default=(), exclude=True)

    def verdicts(self) -> dict[Verdict, int]:
        """How many of the claims have each verdict; verdicts that no claim has are left out."""
        found = [claim.verdict for claim in self.claims]
        return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}

    def save(self, folder: Path) -> "Page":
        """Write it into the folder, and return it."""
        curves = [
            {"key": run.key, "panel": panel.title, "rule": curve.rule}
            for panel in self.panels
            for curve in panel.curves
            for run in curve.runs
            if hasattr(run, "key")
        ]
        document = self.model_dump(mode="json") | {"curves": curves}
        content = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        write_whole(folder / SUMMARY, content.encode())
        return self

    @classmethod
    def load(
        cls, folder: Path, find: "Callable[[str], StoredRun | None]" = lambda key: None
    ) -> "Page":
        """Read the page in a folder.

        Args:
            folder: the folder of a figure or table.
            find: gives the run with a key, ``None`` if it cannot be read.
        """
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
            saved = _PageInFile.model_validate(document)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"]) or "summary"
            raise BezoarError(f"{path}: {where}: {problem['msg']}") from None
        return saved.with_runs(find)


class _PageInFile(Page):
    """A page as it is written: instead of panels it has the keys of their runs."""

    curves: tuple[_CurveInFile, ...] = ()

    def with_runs(self, find: "Callable[[str], StoredRun | None]") -> Page:
        runs: dict[str, dict[str, list[StoredRun]]] = {}
        missing = []
        for curve in self.curves:
            if run := find(curve.key):
                runs.setdefault(curve.panel, {}).setdefault(curve.rule, []).append(run)
            else:
                missing.append(curve.key)
        panels = [
            Panel(title, tuple(Curve.stored(rule, several) for rule, several in curves.items()))
            for title, curves in runs.items()
        ]
        fields = {name: getattr(self, name) for name in Page.model_fields}
        return Page(**fields | {"panels": tuple(panels), "missing": tuple(dict.fromkeys(missing))})


def page_folders(results: Path) -> list[Path]:
    """The folders with a page under a folder of results, fig2 before fig10."""
    found = [path.parent for path in results.glob(f"*/{SUMMARY}")]
    return sorted(found, key=lambda folder: _by_number(folder.name))


def _by_number(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]
