"""The table of workers above the bars of a sweep."""

import io

from rich.console import Console

from bezoar.cli import _workers
from bezoar.cli._screen import training_bars
from bezoar.cli._workers import NOBODY, WorkersTable


def shown(table):
    screen = Console(file=io.StringIO(), width=100)
    screen.print(table.table())
    return screen.file.getvalue()


def test_that_nobody_is_there_is_shown_until_somebody_comes(monkeypatch, capsys):
    monkeypatch.setattr(_workers, "errors", Console(stderr=True, force_terminal=True))
    table = WorkersTable(training_bars())
    assert NOBODY not in shown(table)
    table.workers(0)
    assert NOBODY in shown(table)
    table.workers(2)
    assert NOBODY not in shown(table)
    assert capsys.readouterr().err == ""


def test_without_a_terminal_it_is_printed(capsys):
    table = WorkersTable(training_bars())
    table.workers(0)
    table.workers(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [NOBODY, "a worker is there; the sweep goes on"]
