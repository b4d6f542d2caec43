"""``bezoar reproduce`` for the paper's tables, Figure 9 and the theory beside real runs."""

import csv

from typer.testing import CliRunner

from bezoar import theory
from bezoar.cli._main import app
from bezoar.report import save_table


def reproduce(*arguments):
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments), "--workers", "1"])
    assert result.exit_code == 0, result.output
    assert all(len(line) <= 80 for line in result.output.splitlines() if "/" not in line)
    return result.output


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
    assert (tmp_path / "fig9" / "lower_bound.png").read_bytes()[:4] == b"\x89PNG"
    assert "What to see: in both instances" in text
    assert not list(tmp_path.rglob(".*"))


def test_cells_of_a_table_are_escaped(tmp_path):
    paths = save_table(tmp_path / "new" / "a.b", ["x|y", "z"], [["1,5", '"']])
    assert [path.name for path in paths] == ["a.b.csv", "a.b.md"]
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


def test_contamination(tmp_path):
    text = reproduce("contamination", "--out", tmp_path, "--iterations", "10")
    assert "What to see: the weighted mean's error moves with δ alone" in text
    names = sorted(path.name for path in (tmp_path / "contamination").iterdir())
    assert names == [
        "by_delta.csv", "by_delta.md", "by_delta_max.csv", "by_delta_max.md", "contamination.png",
    ]  # fmt: skip
