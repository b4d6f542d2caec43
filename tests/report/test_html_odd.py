"""Reports of odd results: damaged, lacking, hostile."""

import re
import shutil
from datetime import UTC, datetime

import numpy as np
import pytest
import torch
from html_page import Page
from report_results import HOSTILE, hostile_results, made_up, save

from bezoar import BezoarError, aggregators
from bezoar.experiments import RunSpec, Store, network_of, run_key, versions
from bezoar.report import Image, look, results_table, runs_page, write_report
from bezoar.report import Page as Kept
from bezoar.report._style import BASELINE, DARK, OTHER_COLOURS, contrast, on_dark
from bezoar.store import Finished
from bezoar.training import History


def test_runs_that_differ_otherwise_are_told_apart_and_in_order(tmp_path):
    store = Store(tmp_path)
    for fields in (
        {"weight_decay": 0.5},
        {"weight_decay": 0.0},
        {"poisoned": 2},
        {"poisoned": [1, 2]},
        {"attack": "random_labels"},
        {"iterations": 2000},
    ):
        spec = RunSpec.read({"aggregator": "median", **fields})
        save(store, spec, made_up(spec, 3, ("training_loss",)))
    data = Page(write_report(tmp_path)).data
    titles = [panel["title"] for panel in data["sections"][0]["panels"]]
    assert len(set(titles)) == 6
    assert titles[0].startswith("two_castle · iid")
    assert any("poisoned 1, 2" in title for title in titles)
    assert any("random_labels" in title for title in titles)
    assert data["sections"][0]["metric"] == "training_loss"


def test_networks_that_are_written_alike_are_told_apart(tmp_path):
    """Long lists are written by their length, so two networks of 14 links have the same text."""
    store, runs = Store(tmp_path), []
    ring = [[agent, (agent + 1) % 14] for agent in range(14)]
    for edges in (ring, [*ring[1:], [0, 5]]):
        spec = RunSpec.read({"network": {"edges": edges}, "poisoned": [2]})
        runs.append(save(store, spec, made_up(spec, 3)))
    table = results_table(runs)
    assert table.columns[0] == "network"
    assert len({row[0] for row in table.rows}) == len(table.rows) == 2
    assert all(row[0].startswith("from_edges:edges=[14 items] #") for row in table.rows)
    assert "network" in runs_page("Runs", runs).tables[0].columns
    page = Page(write_report(tmp_path))
    titles = [panel["title"] for panel in page.data["sections"][0]["panels"]]
    assert sorted(title.removesuffix(" · iid") for title in titles) == sorted(
        row[0] for row in table.rows
    )
    assert sum(tag == "article" for tag, _ in page.tags) == 2
    assert "2 runs on 2 networks" in page.shown


def test_runs_of_one_spec_are_no_seeds_of_each_other(tmp_path):
    """Between them the network's file has changed; the newer run alone is shown."""
    file, store = tmp_path / "mine.edges", Store(tmp_path / "s")
    spec = RunSpec.read({"network": {"name": "from_file", "path": str(file)}, "poisoned": [2]})
    for hour, links in ((2, "0 1\n1 2\n2 0\n"), (1, "0 1\n1 2\n2 3\n3 0\n")):
        file.write_text(links)
        save(store, spec, made_up(spec, hour), datetime(2026, 1, 2, hour, tzinfo=UTC))
    page = Page(write_report(tmp_path / "s"))
    [curve] = page.data["curves"]
    assert len(curve["values"]["accuracy"]) == 2
    assert "Not shown: 1 older run with the same specs as newer ones." in page.shown
    assert "3 agents, 3 edges; poisoned: 2" in page.shown
    assert "4 agents" not in page.shown


def test_runs_whose_times_nothing_tells_are_shown(tmp_path):
    store, spec = Store(tmp_path), RunSpec()
    finished = Finished(
        spec.document(), spec.texts(), versions(), network_of(spec), made_up(spec, 3)
    )
    store.save(run_key(spec), finished, {"made by": "somebody else"})
    page = Page(write_report(tmp_path))
    assert len(page.data["curves"]) == 1
    assert "Trained" not in page.shown


def test_a_run_that_diverged_is_called_so(tmp_path):
    spec = RunSpec.read({"aggregator": "ios"})
    history = History(
        np.arange(2), {"accuracy": np.array([0.1, np.nan])}, torch.full((2, 2), torch.inf)
    )
    save(Store(tmp_path), spec, history)
    page = Page(write_report(tmp_path))
    assert page.data["curves"][0]["values"]["accuracy"] == [0.1, None]
    assert "diverged" in page.shown


def test_the_network_is_the_one_that_was_trained_whatever_its_file_says_today(tmp_path):
    file = tmp_path / "mine.edges"
    file.write_text("0 1\n1 2\n2 0\n")
    spec = RunSpec.read({"network": {"name": "from_file", "path": str(file)}, "poisoned": [2]})
    save(Store(tmp_path / "s"), spec, made_up(spec, 3))
    assert "3 agents, 3 edges; poisoned: 2" in Page(write_report(tmp_path / "s")).shown
    file.write_text("0 1\n1 2\n2 3\n3 0\n")
    assert "3 agents, 3 edges; poisoned: 2" in Page(write_report(tmp_path / "s")).shown
    file.unlink()
    assert "3 agents, 3 edges; poisoned: 2" in Page(write_report(tmp_path / "s")).shown


def test_damaged_and_removed_runs_are_left_out_and_counted(reproduced, tmp_path):
    copy = shutil.copytree(reproduced, tmp_path / "results")
    store = Store(copy / "store")
    keys = {key for n in ("fig1", "fig2") for key in Kept.load(copy / n).missing}
    told = []
    write_report(copy, problem=told.append)
    assert told == []
    shutil.rmtree(copy / "store" / "runs" / min(keys))
    shown = Page(write_report(copy, problem=told.append)).shown
    assert "1 run behind this is no longer in the store" in shown
    assert "verdicts are from when it was there" in shown
    [problem] = told
    assert min(keys) in problem
    told.clear()
    (copy / "store" / "runs" / max(keys) / "run.json").write_text("{")
    shown = Page(write_report(copy, problem=told.append)).shown
    assert len(told) == 2
    assert "1 run of the store could not be read and is left out" in shown
    assert "2 further runs of the store belong to nothing on this page" in shown
    told.clear()
    one, other, *_ = (key for key in store.finished_keys() if key != max(keys))
    (copy / "store" / "runs" / one / "run.json").write_text("{")
    metrics = copy / "store" / "runs" / other / "metrics.parquet"
    metrics.write_bytes(metrics.read_bytes()[:100])
    shown = Page(write_report(copy / "store", problem=told.append)).shown
    assert len(told) == 3
    assert "3 runs of the store could not be read and are left out" in shown


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: None, "no results in"),
        (lambda path: (path / "runs").mkdir(), "no results in"),
        (lambda path: path.rmdir(), "there is no folder"),
        (lambda path: (path.rmdir(), path.write_text("x")), "there is no folder"),
        (
            lambda path: (path / "format.json").write_text('{"format": 2}'),
            "this version of bezoar knows formats up to 1",
        ),
    ],
)
def test_what_cannot_be_reported_is_said(tmp_path, prepare, message):
    folder = tmp_path / "results"
    folder.mkdir()
    prepare(folder)
    with pytest.raises(BezoarError, match=message):
        write_report(folder)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{"format": 2, "colour": "new"}', "it has format 2, this version of bezoar knows"),
        ('{"format": 1}', "name: Field required"),
        ("{", "it is not valid JSON"),
        ("[]", "summary: "),
    ],
)
def test_a_summary_that_cannot_be_read_is_said(tmp_path, document, message):
    (tmp_path / "fig1").mkdir()
    (tmp_path / "fig1" / "summary.json").write_text(document)
    with pytest.raises(BezoarError, match=re.escape(message)) as raised:
        write_report(tmp_path)
    assert str(tmp_path / "fig1" / "summary.json") in str(raised.value)


def test_results_are_a_folder(tmp_path):
    with pytest.raises(BezoarError, match="results: expected the path of a folder, found None"):
        write_report(None, tmp_path / "report.html")


def test_it_is_not_written_over_a_folder(reproduced, tmp_path):
    with pytest.raises(BezoarError, match="expected a file to write, found the folder"):
        write_report(reproduced, tmp_path)


@pytest.mark.parametrize("file", ["../secret.png", "/etc/hostname", "text.png"])
def test_only_images_beside_a_summary_get_in(tmp_path, file):
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\nsecret")
    summary = Kept(
        name="f", title="F", caption="", command="x", images=(Image(file=file, alt="An image"),)
    )
    summary.save(tmp_path / "f")
    (tmp_path / "f" / "text.png").write_text("no image")
    with pytest.raises(BezoarError, match=r"beside the summary|expected a PNG"):
        write_report(tmp_path)


def test_figures_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("table1", "fig10", "fig2"):
        Kept(name=name, title=name, caption="", command="x").save(tmp_path / name)
    page = Page(write_report(tmp_path))
    assert [page.shown.find(name) for name in ("fig2", "fig10", "table1")] == sorted(
        page.shown.find(name) for name in ("fig2", "fig10", "table1")
    )
    assert "3 results that took no training" in page.shown


def test_hostile_names_stay_texts(tmp_path):
    page = Page(write_report(hostile_results(tmp_path)))
    assert len(page.all("script")) == 2
    assert not page.all("img")
    [rule] = page.data["rules"].values()
    assert rule["label"] == f"R{HOSTILE}"
    assert page.data["sections"][0]["panels"][0]["title"] == f"P{HOSTILE}"
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_every_rule_stands_out_on_a_dark_page():
    rules = (*aggregators.AGGREGATORS, BASELINE)
    colours = [*(look(rule).colour for rule in rules), *OTHER_COLOURS]
    for colour in colours:
        assert contrast(on_dark(colour), DARK) >= 3
    assert len({on_dark(colour) for colour in colours}) == len(colours)
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
