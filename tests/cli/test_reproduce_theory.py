"""``bezoar reproduce`` for the paper's tables, Figure 9 and the theory beside real runs."""

import csv

import pytest
from typer.testing import CliRunner

from bezoar import theory
from bezoar.cli._main import app
from bezoar.report import Page, Table


def reproduce(*arguments):
    """What the command writes, as one line of words."""
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments), "--workers", "1"])
    assert result.exit_code == 0, result.output
    assert all(len(line) <= 80 for line in result.output.splitlines() if "/" not in line)
    return " ".join(result.output.split())


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.reader(file))


def test_tables_and_figure_9(tmp_path):
    text = reproduce("table1", "table2", "fig9", "--out", tmp_path)
    first = read(tmp_path / "table1" / "table1.csv")
    assert first[0] == ["aggregator", "ρ", "M", "Two-castle", "Line", "Fan"]
    assert [row[0] for row in first[1:]] == ["TriMean", "FABA", "CC", "CG", "IOS"]
    assert [row[2] for row in first[1:]] == ["row-stochastic"] * 3 + ["doubly stochastic"] * 2
    expected = [row.value for row in theory.contraction_orders(1 / 9)]
    assert [float(row[3]) for row in first[1:]] == [round(value, 4) for value in expected]
    second = read(tmp_path / "table2" / "table2.csv")
    assert [row[1:] for row in second[1:]] == [
        ["Θ(δ_max² ξ²)", "0.0123", "0.1111", "0.1111"],
        ["Θ(δ² ξ²)", "0.0100", "0.0100", "0.0100"],
    ]
    markdown = (tmp_path / "table2" / "table2.md").read_text(encoding="utf-8").splitlines()
    assert markdown[:2] == [
        "| aggregator | learning error | Two-castle | Line | Fan |",
        "| --- | --- | --- | --- | --- |",
    ]
    assert (tmp_path / "fig9" / "fig9.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "fig9" / "fig9.pdf").read_bytes()[:5] == b"%PDF-"
    assert "In both instances every regular agent hears 4 agents with label 1" in text
    assert text.endswith(f"Report: {tmp_path / 'report.html'}")
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize("name", ["table1", "table2", "fig9", "fig10"])
def test_what_needs_no_runs_is_summed_up_too(tmp_path, name):
    reproduce(name, "--out", tmp_path)
    summary = Page.load(tmp_path / name)
    assert (summary.name, summary.command) == (name, f"bezoar reproduce {name}")
    for file in (*summary.data, *(image.file for image in summary.images)):
        assert (tmp_path / name / file).stat().st_size > 100
    assert all(len(image.alt) > 100 for image in summary.images)
    assert not (tmp_path / "store").exists()


def test_cells_of_a_table_are_escaped(tmp_path):
    table = Table(title="", columns=("x|y", "z"), rows=(("1,5", '"'),))
    assert table.save(tmp_path / "new" / "a.b") == ("a.b.csv", "a.b.md")
    paths = [tmp_path / "new" / name for name in ("a.b.csv", "a.b.md")]
    assert read(paths[0]) == [["x|y", "z"], ["1,5", '"']]
    assert paths[1].read_text(encoding="utf-8").startswith("| x\\|y | z |\n")


def test_theorems(tmp_path):
    text = reproduce("theorems", "--out", tmp_path, "--iterations", "4")
    assert "On fan λ < 1 fails for TriMean, FABA, CC, RFA, CG, IOS" in text
    assert "runs to which a theorem applies stay below both bounds" in text
    assert "falls like K to the power of" in text
    rows = read(tmp_path / "theorems" / "theorems.csv")
    assert len(rows) == 1 + 4 * 3 * 7
    assert {row[0] for row in rows[1:]} == {"iid", "dirichlet", "by_class", "quadratic"}
    summary = Page.load(tmp_path / "theorems")
    assert [len(table.rows) for table in summary.tables] == [3 * 7] * 4
    assert summary.command == "bezoar reproduce theorems --iterations 4"


def test_theorems_after_a_single_iteration(tmp_path):
    assert "falls like K to the power of" in (
        reproduce("theorems", "--out", tmp_path, "--iterations", 1)
    )


def test_contamination(tmp_path):
    text = reproduce("contamination", "--out", tmp_path, "--iterations", "10")
    assert "The weighted mean's error moves with δ alone" in text
    names = sorted(path.name for path in (tmp_path / "contamination").iterdir())
    assert names == [
        "by_delta.csv", "by_delta.md", "by_delta_max.csv", "by_delta_max.md", "contamination.png",
        "summary.json",
    ]  # fmt: skip
