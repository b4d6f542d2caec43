"""Tables as files: CSV for machines, Markdown for people."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from bezoar._files import write_whole


def save_table(
    stem: str | Path, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[Path, Path]:
    """Save a table as ``stem.csv`` and ``stem.md``.

    Args:
        stem: where to, without an ending.
        columns: the headings.
        rows: the cells.

    Returns:
        Both paths.
    """
    stem = Path(stem)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    lines = [columns, ["---"] * len(columns), *rows]
    markdown = "".join(f"| {' | '.join(_escape(cell) for cell in line)} |\n" for line in lines)
    return save_text(stem, ".csv", text.getvalue()), save_text(stem, ".md", markdown)


def save_text(stem: Path, ending: str, text: str) -> Path:
    """Save a text as ``stem`` with an ending, as a whole or not at all."""
    return write_whole(stem.with_name(stem.name + ending), text.encode())


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")
