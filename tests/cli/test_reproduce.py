"""``bezoar reproduce`` for the figures that runs are trained for, on a few images."""

import csv
import re
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from typer.testing import CliRunner

from bezoar import BezoarError
from bezoar.cli._main import app
from bezoar.experiments import Store, _prepare, spec_of
from bezoar.paper import CLAIMS, FIGURES, MNIST_FIGURES
from bezoar.report import Page

pytestmark = pytest.mark.usefixtures("tiny_mnist_throughout")

#: The figures of MNIST that runs are trained for.
TRAINED = [name for name in MNIST_FIGURES if name in FIGURES]


def reproduce(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments), "--workers", "1"])


def succeeded(*arguments):
    result = reproduce(*arguments)
    assert result.exit_code == 0, result.output
    return result


def words(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def results(tmp_path_factory, tiny_mnist_throughout):
    """Everything about MNIST, two seeds, two iterations; and what the command said."""
    out = tmp_path_factory.mktemp("results")
    return out, succeeded("mnist", "--iterations", 2, "--seeds", 2, "--out", out)


def test_every_figure_and_table_has_a_folder(results):
    out, _ = results
    assert {path.name for path in out.iterdir()} == {*MNIST_FIGURES, "store", "report.html"}
    for name in TRAINED:
        files = {f"{name}.png", f"{name}.pdf", f"{name}.csv", "summary.json"}
        assert {path.name for path in (out / name).iterdir()} == files
        assert (out / name / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert (out / name / f"{name}.pdf").read_bytes()[:5] == b"%PDF-"
    assert not list(out.rglob(".*.part"))


def test_runs_are_trained_once_and_together(results):
    out, result = results
    runs = list(Store(out / "store").runs())
    assert len(runs) == 14 + 5 * 27
    assert "149 runs: 0 already there, 149 new in 6 groups" in words(result.stderr)
    assert {len(run.provenance["trained_with"]) for run in runs} == {13, 26}
    specs = [spec_of(run) for run in runs]
    assert {spec.seed for spec in specs if spec.partition.name == "by_class"} == {0}


@pytest.mark.parametrize("name", TRAINED)
def test_the_data_is_what_the_store_has(results, name):
    out, _ = results
    store = Store(out / "store")
    page = Page.load(out / name, store.load)
    assert not page.missing
    with open(out / name / f"{name}.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    by_run = {
        key: list(lines)
        for key, lines in groupby(
            rows,
            key=lambda r: (r["network"], r["partition"].split(":")[0], r["rule"], r["seed"]),
        )
    }
    shown = {
        (spec.network.name, spec.partition.name, curve.rule, str(spec.seed)): run
        for panel in page.panels
        for curve in panel.curves
        for run in curve.runs
        for spec in [spec_of(run)]
    }
    assert set(by_run) == set(shown)
    for key, run in shown.items():
        lines = by_run[key]
        assert [int(line["iteration"]) for line in lines] == run.iterations.tolist()
        for metric, values in run.metrics.items():
            found = [float(line[metric]) if line[metric] else np.nan for line in lines]
            assert np.array_equal(found, values, equal_nan=True), metric


@pytest.mark.parametrize("name", TRAINED)
def test_claims_are_judged_and_told(results, name):
    out, result = results
    claims = Page.load(out / name).claims
    expected = [claim for claim in CLAIMS if claim.figure == name]
    assert len(claims) == len(expected) > 0
    text = words(result.stdout)
    full = FIGURES[name].comparisons()[0].recipe.length
    for claim, source in zip(claims, expected, strict=True):
        assert claim.text.startswith(source.text.removesuffix("."))
        assert claim.text.endswith(f"; judged after 2 instead of {full:,} iterations.")
        assert claim.verdict == "undecided"
        assert claim.paper == source.paper
        of_class = "By class" in source.text or name == "fig1"
        changes = "accuracy" in source.text and "below" in source.text and "i.i.d" in source.text
        seeds = 1 if of_class and not changes else 2
        # After two iterations a baseline may be so low that nothing is more than 0.2 below it.
        near = getattr(source.criterion, "by", 0) == -0.2
        assert len(claim.margins) in ((0, seeds) if near else (seeds,))
        assert words(f"{claim.verdict} {claim.text} {claim.measured}") in text


def test_the_command_ends_with_the_claims_counted_and_the_report(results):
    out, result = results
    *_, tally, report = result.stdout.splitlines()
    assert report == f"Report: {out / 'report.html'}"
    made = sum(claim.figure in TRAINED for claim in CLAIMS)
    assert tally.startswith(f"{made} claims of the paper at 2 seeds: ")
    told = map(
        int, re.search(r"(\d+) hold, (\d+) do(?:es)? not, (\d+) undecided\.$", tally).groups()
    )
    judged = Counter(claim.verdict for name in TRAINED for claim in Page.load(out / name).claims)
    assert list(told) == [judged[word] for word in ("holds", "does not hold", "undecided")]


def test_a_second_time_nothing_is_trained_and_nothing_changes(results, monkeypatch):
    out, _ = results

    def train(*arguments):
        pytest.fail("trained again")

    monkeypatch.setattr(_prepare, "train", train)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    result = succeeded("fig4-mnist", "fig1", "--iterations", 2, "--seeds", 2, "--out", out)
    assert "nothing new to compute" in result.stderr
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_quick_is_short_and_says_so(tmp_path):
    result = succeeded("fig1", "--quick", "--out", tmp_path)
    summary = Page.load(tmp_path / "fig1-quick")
    assert summary.command == "bezoar reproduce fig1 --scale quick"
    assert "40 iterations instead of 500: an impression, not the figure" in summary.caption
    assert all("after 40 instead of 500 iterations" in claim.text for claim in summary.claims)
    assert "Nothing here is random" in words(result.stdout)
    run = Store(tmp_path / "store").load(summary.missing[0])
    assert run.iterations.tolist() == list(range(0, 41, 4))


def test_a_figure_with_failed_runs_is_not_drawn_but_others_are(tmp_path, monkeypatch):
    prepare = _prepare.prepare

    def refuse(spec):
        if spec.network.name == "line" and spec.aggregator.name == "faba":
            raise BezoarError("aggregator: FABA is on strike")
        return prepare(spec)

    monkeypatch.setattr(_prepare, "prepare", refuse)
    result = reproduce("fig5", "fig7", "table2", "--iterations", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert "aggregator: FABA is on strike" in result.stderr
    assert "fig5: not drawn, as 3 runs of 27 failed" in words(result.stderr)
    assert {path.name for path in tmp_path.iterdir()} == {"fig7", "table2", "store", "report.html"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig99"], "figure: 'fig99' is not known; allowed: fig"),
        (["fig2", "minst"], "figure: 'minst' is not known; allowed: mnist, "),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_done(tmp_path, arguments, message):
    result = reproduce(*arguments, "--out", tmp_path)
    assert isinstance(result.exception, BezoarError)
    assert message in str(result.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scale", "tiny"], "scale: 'tiny' is not known; allowed: "),
        (["--setting", "author"], "setting: 'author' is not known; allowed: authors"),
        (["--quick", "--scale", "small"], "quick: it is a scale, found the scale 'small'"),
        (["--markdown", "page.html"], "markdown: expected a name that ends in .md, found 'page"),
    ],
)
def test_a_wrong_variant_is_refused_before_anything_is_done(tmp_path, arguments, message):
    result = reproduce("fig1", *arguments, "--out", tmp_path)
    assert isinstance(result.exception, BezoarError)
    assert message in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_the_authors_settings_have_a_folder_of_their_own(tmp_path):
    out, page = tmp_path / "out", tmp_path / "docs" / "first.md"
    succeeded("fig1", "--iterations", 2, "--out", out)
    before = (out / "fig1" / "fig1.csv").read_bytes()
    (out / "fig1-quick").mkdir()  # where the command was stopped before the figure was drawn
    arguments = ("--setting", "authors", "--iterations", 2, "--out", out, "--markdown", page)
    result = succeeded("fig1", *arguments)
    assert (out / "fig1" / "fig1.csv").read_bytes() == before
    summary = Page.load(out / "fig1-authors")
    assert summary.command == "bezoar reproduce fig1 --setting authors --iterations 2"
    assert summary.metrics == ("accuracy_all", "variance_norm")
    assert all("with the authors' settings" in claim.text for claim in summary.claims)
    assert "Figure 1: a motivating example (the authors' settings)" in words(result.stdout)
    # The page has both variants.
    text = page.read_text(encoding="utf-8")
    assert text.count("| fig1 | after 2 instead of 500 iterations | undecided |") == 4
    assert text.count("| fig1-authors | with the authors' settings, after 2 ins") == 4
    for name in ("fig1", "fig1-authors"):
        assert f"](first/{name}.png)" in text
        assert (tmp_path / "docs" / "first" / f"{name}.png").is_file()
        assert f"every measurement: [{name}.csv](first/{name}.csv)" in text
        data = (tmp_path / "docs" / "first" / f"{name}.csv").read_bytes()
        assert data == (out / name / f"{name}.csv").read_bytes()
    assert f"`{summary.command}`" in text
    assert "14 runs, " in text
    assert "torch 2." in text


def test_thresholds(tmp_path):
    page = tmp_path.with_suffix(".md")
    succeeded("threshold", "--iterations", 1, "--out", tmp_path, "--markdown", page)
    assert "\n## The clipping threshold of CC and CG\n" in page.read_text(encoding="utf-8")
    names = {path.name for path in (tmp_path / "threshold").iterdir()}
    assert names == {"threshold.png", "threshold.pdf", "threshold.csv", "summary.json"}
    with open(tmp_path / "threshold" / "threshold.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({(row["network"], row["rule"]) for row in rows}) == 3 * (2 * 8 + 2)
    # Figure 7's runs are there already, but for CC and CG with 0.1 on two partitions.
    more = succeeded("fig7", "--iterations", 1, "--out", tmp_path)
    assert "27 runs: 23 already there, 4 new" in words(more.stderr)


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    """A cache of their own for images that are decoded."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


# Real images take ten times as long and show the same.
@pytest.mark.usefixtures("own_cache")
def test_networks_in_a_minute(tmp_path, random_archives):
    name = "fig11"
    succeeded(name, "--quick", "--iterations", 1, "--data-dir", random_archives, "--out", tmp_path)
    page = Page.load(tmp_path / f"{name}-quick", Store(tmp_path / "store").load)
    runs = [run for panel in page.panels for curve in panel.curves for run in curve.runs]
    specs = [spec_of(run) for run in runs]
    assert {spec.dataset.name for spec in specs} == {"tiny_imagenet"}
    assert "quick scale: CNN of width 8 on Tiny-ImageNet" in page.caption
    assert "cut down: " in page.caption
    assert {claim.verdict for claim in page.claims} == {"undecided"}
    assert all("at quick scale, on fewer images" in claim.text for claim in page.claims)


@pytest.mark.usefixtures("own_cache")
def test_both_datasets_of_figure_4(tmp_path, random_archives):
    succeeded(
        *("fig4", "fig3", "--quick", "--iterations", 1, "--data-dir", random_archives),
        *("--out", tmp_path),
    )
    page = Page.load(tmp_path / "fig4-quick", Store(tmp_path / "store").load)
    assert not page.missing
    assert len(list(Store(tmp_path / "store").runs())) == 2 * 27  # Figure 3's are half of them
    assert [table.title.split(":")[0] for table in page.tables] == ["MNIST"] * 2 + ["CIFAR-100"] * 2
    assert len(page.claims) == 2 * 4


def test_there_is_at_least_one_seed(tmp_path):
    assert "--seeds" in reproduce("fig1", "--seeds", 0, "--out", tmp_path).output
