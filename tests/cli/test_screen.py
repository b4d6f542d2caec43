"""What is printed is whole at every width."""

import io

import pytest
from rich.console import Console

from bezoar.cli import _screen
from bezoar.report import Table

ROWS = [
    ("clipped_gossip:threshold=0.1", *["0.8412 ±0.0031"] * 4),
    ("clipped_gossip:threshold=10.0", *["0.5301 ±0.0107"] * 4),
]
COLUMNS = ("rule", "accuracy_mean", "accuracy_worst", "accuracy", "poison_share")


def printed(table, width, monkeypatch):
    screen = Console(file=io.StringIO(), width=width)
    monkeypatch.setattr(_screen, "console", screen)
    _screen.print_table(table)
    return screen.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_number_and_no_name_is_cut(width, monkeypatch):
    text = printed(Table.of("", COLUMNS, ROWS), width, monkeypatch)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    together = "".join(text.split())
    begins = "".join(line.split()[0] for line in text.splitlines() if line.strip())
    for name, *cells in ROWS:
        assert all(text.count(cell) == 4 for cell in cells)
        # Where a name is folded beside numbers, its parts begin their lines.
        assert name in together or name in begins
    for column in COLUMNS:
        assert column in text


def test_a_table_that_fits_is_a_table(monkeypatch):
    text = printed(Table.of("Title", ("rule", "agents"), [("ios", "0.5")]), 40, monkeypatch)
    assert [line.split() for line in text.splitlines() if line.strip()] == [
        *(["Title"], ["rule", "agents"], ["─" * 12], ["ios", "0.5"])
    ]


def test_a_name_between_colons_is_not_taken_for_a_picture(capsys):
    _screen.console.print("own.py:ring:agents=6", markup=False)
    _screen.print_problem("network own.py:star: no option 'agent'")
    assert tuple(capsys.readouterr()) == (
        "own.py:ring:agents=6\n",
        "bezoar: network own.py:star: no option 'agent'\n",
    )
