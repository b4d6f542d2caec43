import re
import subprocess
import sys

from typer.testing import CliRunner

from bezoar import BezoarError
from bezoar.cli._main import app
from bezoar.report import Page
from bezoar.report._page import RunOfPage


def inside(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_it_tells_where_the_report_is_and_how_large(tmp_path):
    Page(name="t", title="Table", caption="", command="bezoar").save(tmp_path / "t")
    result = inside("report", tmp_path)
    assert result.exit_code == 0, result.output
    path = tmp_path / "report.html"
    assert re.fullmatch(rf"Report: {re.escape(str(path))} \(0\.0 MB\)\n", result.output)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    other = tmp_path / "deep" / "other.html"
    assert inside("report", tmp_path, "--out", other).exit_code == 0
    assert other.read_bytes() == path.read_bytes()


def test_missing_runs_are_told_by_the_exit_code(tmp_path):
    run = RunOfPage(key="0" * 32, panel="p", rule="ios")
    page = Page(name="t", title="Table", command="bezoar", curves=(run,))
    content = page.model_dump_json()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "summary.json").write_text(content)
    (tmp_path / "store").mkdir()
    result = inside("report", tmp_path)
    assert result.exit_code == 1
    assert f"bezoar: t: the run {run.key} is no longer in {tmp_path / 'store'}" in result.stderr
    assert "1 run behind this is no longer in the store" in (tmp_path / "report.html").read_text()


def test_a_folder_without_results_is_one_line(tmp_path):
    result = inside("report", tmp_path)
    assert isinstance(result.exception, BezoarError)
    assert "no results in" in str(result.exception)


def test_help_does_not_load_what_only_reports_need():
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from bezoar.cli._main import app\n"
        "assert CliRunner().invoke(app, ['report', '--help']).exit_code == 0\n"
        "heavy = {'torch', 'jinja2', 'pyarrow', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
