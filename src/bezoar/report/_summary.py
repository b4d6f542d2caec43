"""What was reproduced, as a file beside its pictures: what the HTML report is made from."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar.experiments._claims import Outcome

#: The name of the file in the folder of a figure or table.
SUMMARY = "summary.json"

#: The version of summaries that this code writes and the newest that it reads.
FORMAT: Literal[1] = 1

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Image(_Part):
    """A picture beside the summary, and what it shows for those who cannot see it."""

    file: str
    alt: str


class Table(_Part):
    """A table, its cells as they are printed."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class JudgedClaim(_Part):
    """A claim of the paper with what was measured.

    Attributes:
        text: the claim, in one sentence.
        verdict: whether it holds here.
        measured: the numbers it was judged by, in one sentence.
        margins: by how much it holds, a number a seed; negative where it does not.
        resolution: a margin nearer to zero than this decides nothing.
        paper: where the paper says so.
    """

    text: str
    verdict: Outcome
    measured: str
    margins: tuple[float, ...]
    resolution: float
    paper: str = ""


class Curve(_Part):
    """A run in the store that the figure shows.

    Attributes:
        key: the run's name in the store.
        panel: the title of the panel it belongs to; runs of different seeds share it.
        rule: the aggregator's name, or ``"baseline"``.
    """

    key: str
    panel: str
    rule: str


class Summary(_Part):
    """A figure or table that was reproduced.

    Attributes:
        name: as given to ``bezoar reproduce``, and the folder's name.
        title: a heading.
        caption: what to see.
        command: what reproduces it.
        images, data: files beside the summary.
        metrics: what it shows of its curves, the most important first.
    """

    format: Literal[1] = FORMAT
    name: str
    title: str
    caption: str
    command: str
    images: tuple[Image, ...] = ()
    data: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()
    curves: tuple[Curve, ...] = ()
    metrics: tuple[str, ...] = ()

    def save(self, folder: Path) -> Path:
        """Write it into the folder."""
        content = self.model_dump_json(indent=2) + "\n"
        return write_whole(folder / SUMMARY, content.encode())

    @classmethod
    def load(cls, folder: Path) -> "Summary":
        """Read the summary in a folder."""
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
            return cls.model_validate(document)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"]) or "summary"
            raise BezoarError(f"{path}: {where}: {problem['msg']}") from None


def summary_folders(results: Path) -> list[Path]:
    """The folders with a summary under a folder of results, fig2 before fig10."""
    found = [path.parent for path in results.glob(f"*/{SUMMARY}")]
    return sorted(found, key=lambda folder: _by_number(folder.name))


def summaries(results: Path) -> Sequence[Summary]:
    """Every summary under a folder of results, in the order of their names."""
    return [Summary.load(folder) for folder in summary_folders(results)]


def _by_number(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]
