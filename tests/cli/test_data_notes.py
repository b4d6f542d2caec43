"""What a reader must know about the data stands wherever results are shown."""

import json
from dataclasses import replace

import pytest
from sweep_server import some_digits
from typer.testing import CliRunner

from bezoar import data
from bezoar.cli._main import app
from bezoar.experiments import Store
from bezoar.report import Page

NOTE = "cut down: 20 of 6,000 training images a class"
SENTENCE = f"Data: few_digits, {NOTE}."
FEW = ("--dataset", "few_digits", "--network", "fan")
SHORT = (*FEW, "--iterations", "2", "--every", "1")


@pytest.fixture(autouse=True)
def few_digits(monkeypatch):
    digits = some_digits(20)
    monkeypatch.setitem(data.DATASETS, "few_digits", lambda: replace(digits, note=NOTE))
    monkeypatch.setitem(data.DATASETS, "some_digits", lambda: digits)


def bezoar(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def read(*arguments):
    """What a command prints, without its line breaks."""
    return " ".join(bezoar(*arguments).split())


@pytest.fixture
def store(tmp_path):
    bezoar("run", *SHORT, "--store", tmp_path / "store")
    return tmp_path / "store"


def test_a_run_says_it_under_its_table_and_in_its_picture(tmp_path):
    text = read("run", *SHORT, "--plot", tmp_path / "run.svg")
    assert text.index("iteration") < text.index(SENTENCE)
    assert json.loads(bezoar("run", *SHORT, "--json"))["data_note"] == NOTE
    assert f"<!-- {SENTENCE} -->" in (tmp_path / "run.svg").read_text(encoding="utf-8")


def test_a_partition_says_it():
    assert SENTENCE in read("show", *FEW)
    assert json.loads(bezoar("show", *FEW, "--json"))["data_note"] == NOTE


def test_a_stored_run_carries_it(store):
    [run] = Store(store).runs()
    assert run.provenance["data_note"] == NOTE
    assert SENTENCE in read("runs", store)
    assert read("runs", "show", run.key, store).count(NOTE) == 1


def test_a_sweep_and_the_report_say_it(store, tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text('dataset = ["few_digits", "some_digits"]\niterations = 2\nevery = 1\n')
    assert read("sweep", spec, "--store", store).count("Data: ") == 1
    bezoar("report", store)
    page = (store / "report.html").read_text(encoding="utf-8")
    assert f'<p class="notice">{SENTENCE}</p>' in page


def test_a_figure_says_it_in_its_caption(tmp_path, monkeypatch):
    monkeypatch.setitem(data.DATASETS, "mnist", data.DATASETS["few_digits"])
    bezoar("reproduce", "fig1", "--iterations", "1", "--out", tmp_path)
    caption = Page.load(tmp_path / "fig1").caption
    assert caption.endswith(f"{NOTE}.")


def test_data_without_a_note_needs_no_words(tmp_path):
    others = ("--dataset", "some_digits", "--network", "fan")
    assert "Data: " not in bezoar("show", *others)
    bezoar("run", *others, "--iterations", 1, "--store", tmp_path / "store")
    [run] = Store(tmp_path / "store").runs()
    assert "data_note" not in run.provenance
    assert "Data: " not in bezoar("runs", tmp_path / "store")
