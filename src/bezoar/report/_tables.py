"""Tables as files: CSV for machines, Markdown for people."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path


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
    stem.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    lines = [columns, ["---"] * len(columns), *rows]
    markdown = "".join(f"| {' | '.join(_escape(cell) for cell in line)} |\n" for line in lines)
    return _write(stem, ".csv", text.getvalue()), _write(stem, ".md", markdown)


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")


def _write(stem: Path, ending: str, text: str) -> Path:
    """Write aside, then move into place, so that no half-written table is left behind."""
    path = stem.with_name(stem.name + ending)
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(text, encoding="utf-8")
    return aside.replace(path)
