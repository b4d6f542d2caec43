"""Networks of one's own on the command line: names, places and notes, from end to end."""

import csv
import json

import pytest
from sweep_server import some_digits
from typer.testing import CliRunner

from bezoar import data
from bezoar.cli._main import app
from bezoar.experiments import Store

WARDS = "ward-1,ward-2\nward-2,ward-3\nward-3,ward-4\nward-4,ward-1\nward-1,ward-3\n"
NAMES = ["ward-1", "ward-2", "ward-3", "ward-4"]
ONE_WAY = f"{WARDS}ward-2,ward-1\n"
NOTE = "taken as symmetric and without weights: it had 4 one-way links (ward-1 → ward-3)"
SHORT = ("--dataset", "some_digits", "--iterations", "2", "--every", "1")


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    digits = some_digits(20)
    monkeypatch.setitem(data.DATASETS, "some_digits", lambda: digits)
    (tmp_path / "wards.csv").write_text(WARDS)
    (tmp_path / "one-way.csv").write_text(ONE_WAY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bezoar(*arguments, fails=False):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if fails:
        assert result.exception is not None
        return str(result.exception)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_agents_are_told_by_their_names():
    text = bezoar("show", "--network", "wards.csv", "--poisoned", "ward-3", *SHORT[:2])
    assert "wards.csv: 4 agents, 5 edges; poisoned: ward-3" in text
    assert "■ ward-3" in text
    text = bezoar("theory", "--network", "wards.csv", "--poisoned", "ward-3,ward-4")
    assert "poisoned: ward-3, ward-4" in text
    assert "(agent ward-1: 2 of 4 inputs)" in text
    found = json.loads(bezoar("theory", "--network", "wards.csv", "--poisoned", "1", "--json"))
    assert found["names"] == NAMES


def test_errors_name_agents():
    told = bezoar("run", "--network", "wards.csv", "--poisoned", "ward-33", *SHORT, fails=True)
    assert "poisoned: agent ward-33 is not in the network; allowed: ward-3" in told
    rule = ("--aggregator", "trimmed_mean")
    told = bezoar("run", "--network", "wards.csv", "--poisoned", "3", *rule, *SHORT, fails=True)
    assert "impossible at agent ward-" in told
    assert "of the wards network" in told
    told = bezoar("show", "--network", "wards.csv", "--poisoned", ",", fails=True)
    assert "poisoned: expected a number of agents such as 2" in told


def test_placement():
    cut = ("--network", "wards.csv", "--poisoned", "2", "--placement", "cut")
    assert "poisoned: ward-1, ward-3" in bezoar("show", *cut, *SHORT[:2])
    assert "poisoned: ward-1, ward-3" in bezoar("theory", *cut)
    assert "poisoned: ward-1, ward-3" in bezoar("run", *cut, *SHORT)
    text = bezoar("theory", *cut[:2], "--poisoned", "1", "--placement", "cut")
    note = "1 poisoned agent cannot cut the regular network; it takes 2"
    assert f"Network: wards.csv, {note}." in text
    seeds = {
        bezoar("theory", *cut[:4], "--placement", "random", "--seed", seed) for seed in range(6)
    }
    assert len(seeds) > 1


def test_a_note_is_shown_wherever_results_are(here):
    loose = ("--network", "one-way.csv:symmetric=true", "--poisoned", "1")
    told = bezoar("run", "--network", "one-way.csv", *SHORT, fails=True)
    assert "4 one-way links (ward-1 → ward-3)" in told
    sentence = f"Network: one-way.csv:symmetric=true, {NOTE}."
    assert sentence in bezoar("run", *loose, *SHORT, "--store", "store")
    assert json.loads(bezoar("run", *loose, *SHORT, "--json"))["network_note"] == NOTE
    assert sentence in bezoar("show", *loose, *SHORT[:2])
    few = ("--rules", "ios", "--seeds", "1", *SHORT[:4])
    assert sentence in bezoar("compare", *loose, *few)
    assert sentence in bezoar("theory", *loose)
    assert sentence in bezoar("runs", "store")
    [run] = Store("store").runs()
    assert run.network.note == run.provenance["network_note"] == NOTE
    assert sentence in bezoar("runs", "show", run.key, "store")
    bezoar("report", "store", "--out", "report.html")
    assert "it had 4 one-way links (ward-1 → ward-3)" in (here / "report.html").read_text("utf-8")


def test_names_and_places_are_kept_with_stored_runs(here):
    nodes = [{"id": name, "x": x, "y": -x} for x, name in enumerate(["a", "<b>", "c & d"])]
    links = [["a", "<b>"], ["<b>", "c & d"]]
    (here / "net.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    spec = 'network = "net.json"\npoisoned = ["<b>"]\ndataset = "some_digits"\niterations = 1\n'
    (here / "spec.toml").write_text(spec)
    bezoar("sweep", "spec.toml", "--store", "store")
    (here / "net.json").unlink()
    [run] = Store("store").runs()
    assert run.network.names == ("a", "<b>", "c & d")
    assert run.network.positions.tolist() == [[0, 0], [1, -1], [2, -2]]
    assert run.network.named(run.network.poisoned) == ["<b>"]
    bezoar("report", "store", "--out", "report.html")
    page = (here / "report.html").read_text("utf-8")
    assert "poisoned: &lt;b&gt;" in page
    assert "<b>" not in page
    assert ">c &amp; d</text>" in page


def test_exports_have_the_names(here):
    spec = 'network = "wards.csv"\npoisoned = 1\ndataset = "some_digits"\niterations = 1\n'
    (here / "spec.toml").write_text(f"{spec}agent_metrics = true\nlistening = [1]\n")
    bezoar("sweep", "spec.toml", "--store", "store")
    bezoar("runs", "store", "--export", "all.csv")
    with open(here / "all-agents.csv", newline="") as file:
        assert {row["agent"] for row in csv.DictReader(file)} == set(NAMES)
    with open(here / "all-listening.csv", newline="") as file:
        heard = {(row["agent"], row["heard"]) for row in csv.DictReader(file)}
    assert ("ward-1", "ward-3") in heard
    assert ("ward-2", "ward-4") not in heard


def test_an_inline_network(here):
    spec = 'network = {edges = [["a", "b"], ["b", "c"], ["c", "a"]]}\npoisoned = "b"\n'
    (here / "spec.toml").write_text(spec)
    text = bezoar("run", "spec.toml", *SHORT)
    assert "3 agents, 3 edges; poisoned: b" in text
