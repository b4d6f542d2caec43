"""``bezoar report``."""

from pathlib import Path

from bezoar.cli._screen import busy, console
from bezoar.report import write_report


def report(results: Path, out: Path | None) -> None:
    """Write the report of a folder of results, and tell where it is."""
    with busy("Writing the report"):
        path = write_report(results, out)
    size = path.stat().st_size / 1e6
    console.print(f"Report: {path} ({size:.1f} MB)", markup=False, soft_wrap=True)
