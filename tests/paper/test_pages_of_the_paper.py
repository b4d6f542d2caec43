"""What is written beside the paper's figures, and kept as data."""

import csv
import io
import shutil
from datetime import UTC, datetime

import numpy as np
import pytest
import torch
from made_up_curves import LABELS, METRICS, reproduced
from matplotlib import pyplot as plt

from bezoar import BezoarError, paper
from bezoar.experiments import RunSpec, Store, network_of, provenance, run_key, versions
from bezoar.paper import FIGURES, Variant
from bezoar.paper._figure_pages import data_text
from bezoar.paper._texts import alternative, caption
from bezoar.report import Curve, Page, Panel
from bezoar.store import Finished
from bezoar.training import History


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig4-mnist"])
def test_a_figure_is_a_folder_of_files_and_a_summary(tmp_path, name):
    made = reproduced(name, seeds=2, variant=Variant(iterations=40))
    folder = tmp_path / name
    summary = paper.write_figure(folder, made)
    files = {f"{name}.png", f"{name}.pdf", f"{name}.csv", "summary.json"}
    assert {path.name for path in folder.iterdir()} == files
    assert {image.file for image in summary.images} | set(summary.data) == files - {"summary.json"}
    assert Page.load(folder).model_dump() == summary.model_dump()
    assert plt.imread(folder / f"{name}.png").std() > 0.01
    pdf = (folder / f"{name}.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")
    # Of no store, all are missing.
    assert set(Page.load(folder).missing) == {run.key for run in made.parts[0].runs}
    assert plt.get_fignums() == []
    if name == "fig4-mnist":  # the same runs give the same bytes
        paper.write_figure(tmp_path / "again", made)
        for path in folder.iterdir():
            assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_the_data_is_every_run_to_the_last_digit():
    made = reproduced("fig2", seeds=2)
    [part] = made.parts
    rows = list(csv.DictReader(io.StringIO(data_text(made))))
    assert list(rows[0]) == [
        "figure", "scale", "setting", "dataset", "network", "partition", "rule", "seed",
        "iteration", *METRICS,
    ]  # fmt: skip
    points = [
        (where, spec, iteration, point, run)
        for (where, spec), run in zip(part.specs, part.runs, strict=True)
        for point, iteration in enumerate(run.iterations)
    ]
    assert len(rows) == len(points) == 11 * (2 * 2 + 1) * 9
    for row, (where, spec, iteration, point, run) in zip(rows, points, strict=True):
        assert (row["figure"], row["dataset"], row["network"]) == ("fig2", "mnist", "two_castle")
        assert (row["scale"], row["setting"]) == ("quick", "paper")
        assert row["partition"] == str(spec.partition)
        assert (row["rule"], row["seed"]) == (where.rule, str(spec.seed))
        assert row["iteration"] == str(iteration)
        for metric in METRICS:
            value = float(row[metric]) if row[metric] else np.nan
            assert np.array_equal(value, run[metric][point], equal_nan=True)


def test_tables_tell_where_the_curves_end(drawn, tmp_path):
    made = reproduced("fig5", seeds=2)
    accuracy, consensus, single = paper.write_figure(tmp_path, made).tables
    assert accuracy.columns == ("rule", "i.i.d.", "mild non-i.i.d.", "by class")
    assert [row[0] for row in accuracy.rows] == LABELS
    found = made.parts[0].curves.by_place
    curve = found[made.parts[0].specs[0][0]]
    low, high = (f"{limit[-1]:.4f}" for limit in curve.limits("accuracy"))
    assert accuracy.rows[0][1] == f"{curve.mean('accuracy')[-1]:.4f} ({low}…{high})"
    [by_class] = found["line", "by_class", "faba"].runs
    assert accuracy.rows[2][3] == f"{by_class['accuracy'][-1]:.4f}"
    assert single.rows[2][3] == (
        f"{by_class['accuracy_mean'][-1]:.4f} / {by_class['accuracy_worst'][-1]:.4f}"
    )
    assert len(consensus.rows) == 9


def test_captions_tell_of_seeds_and_of_single_agents(tmp_path):
    def told(name, seeds):
        return caption(reproduced(name, seeds))

    assert "Nothing here is random" in told("fig1", 3)
    assert "The partitions are those of seed 0." in told("fig2", 1)
    three = told("fig2", 3)
    assert "Lines are means over 3 seeds" in three
    assert "By class nothing is random: one run stands for every seed." in three
    more_agents = caption(reproduced("fig13", 3, Variant(scale="small")))
    assert "With W = 10 nothing is random: one run stands for every seed." in more_agents
    assert "hides what single agents have: by class, the worst agent's own model" in (
        told("fig5", 1)
    )
    assert "single agents" not in told("fig7", 1)
    assert "which was not measured" in told("fig6", 1)  # it would take longer than training
    assert "The start, the batches and the partitions are those of seed 0." in told("fig3", 1)


def test_captions_tell_how_far_networks_were_trained():
    made = reproduced("fig3", seeds=2, variant=Variant(scale="small"))
    [part] = made.parts
    losses = part.curves.values("two_castle", "by_class", "baseline", "test_loss").mean(0)
    assert f"from {losses[0]:.2f} to {losses[-1]:.2f} (by class)." in caption(made)
    assert "test loss" not in caption(reproduced("fig2"))


def test_captions_tell_on_how_many_samples_gradients_are_measured():
    told = caption(reproduced("fig4", variant=Variant(scale="small")))
    assert "MNIST: Gradients are measured on all samples of an agent." in told
    assert "CIFAR-100: Gradients are measured on 64 samples of an agent." in told
    assert "Gradients are measured" not in caption(reproduced("fig3"))


@pytest.mark.parametrize("name", FIGURES)
def test_alternatives_have_the_numbers(name):
    made = reproduced(name)
    metric, form = ("heterogeneity", ".2g") if "fig4" in name else ("accuracy", ".3f")
    figure = made.figure
    for part in made.parts:
        text = alternative(made, part)
        for network in figure.networks:
            for partition in figure.partitions:
                where = (network, partition)
                ends = [part.curves.finals(*where, rule, metric)[0] for rule in figure.rules]
                assert f"between {min(ends):{form}} (" in text
                assert f"and {max(ends):{form}} (" in text
        assert 100 < len(text) < 1400


@pytest.fixture
def stored(tmp_path):
    """Keeps a figure of one run, with the given provenance."""

    def keep(told):
        store, spec = Store(tmp_path / "store"), RunSpec()
        history = History(np.arange(2), {"accuracy": np.ones(2)}, torch.zeros(2, 2))
        finished = Finished(spec.document(), spec.texts(), versions(), network_of(spec), history)
        run = store.save(run_key(spec), finished, told)
        panel = Panel("p", (Curve.stored([run]),))
        Page(name="fig2", title="T", panels=(panel,)).save(tmp_path / "fig2")
        return run

    return keep


def record(folder):
    return paper.write_record(folder / "page.md", folder, [FIGURES["fig2"]]).read_text()


def test_a_record_says_when_runs_were_trained_and_with_what(stored, tmp_path):
    moment = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    stored(provenance(moment, moment))
    text = record(tmp_path)
    assert "- 1 run, trained 2026-01-02 03:04 UTC, 1 s in all\n" in text
    assert f"torch {torch.__version__.partition('+')[0]}" in text


def test_a_record_is_written_where_nothing_tells_of_the_runs(stored, tmp_path):
    run = stored({"made by": "somebody else"})
    assert record(tmp_path).splitlines()[-1] == "- 1 run"
    shutil.rmtree(run.path)
    assert record(tmp_path).splitlines()[-1] == "- 1 run no longer in the store, or damaged"


def test_a_page_that_could_not_be_written_is_refused(tmp_path):
    (tmp_path / "page.md").mkdir()
    (tmp_path / "file").touch()
    for name, message in (
        ("page.html", "expected a name that ends in .md, found '.*page.html'"),
        ("page.md", "expected a file to write, found the folder .*page.md"),
        ("file/page.md", "cannot make the folder .*file: "),
    ):
        with pytest.raises(BezoarError, match=f"markdown: {message}"):
            paper.write_record(tmp_path / name, tmp_path, [])
