"""The report as a document: whole, well formed, true to the store, and safe."""

import json
import re
import shutil
import tomllib
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
import torch
from report_results import HOSTILE, hostile_results, made_up, origin

from bezoar import BezoarError, data, networks, theory
from bezoar.experiments import Store, expand, partition_of
from bezoar.experiments._spec import RunSpec
from bezoar.report import LOOKS, write_report
from bezoar.report._html_charts import METRICS
from bezoar.report._html_networks import drawing, network_pages
from bezoar.report._style import DARK, contrast, on_dark
from bezoar.report._summary import Image, Summary
from bezoar.training import History

VOID = {"meta", "img", "br", "input", "link", "hr"}


class Page(HTMLParser):
    """What the tests want to know of a page."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.tags, self.open, self.words, self.scripts = [], [], [], []
        self.feed(self.text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def shown(self):
        return " ".join(" ".join(self.words).split())

    @property
    def data(self):
        return json.loads(self.scripts[0])

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="session")
def swept_page(swept, tmp_path_factory):
    return Page(write_report(swept, tmp_path_factory.mktemp("page") / "swept.html"))


@pytest.fixture(scope="session")
def reproduced_page(reproduced, tmp_path_factory):
    return Page(write_report(reproduced, tmp_path_factory.mktemp("page") / "reproduced.html"))


@pytest.fixture(params=["swept_page", "reproduced_page"])
def page(request):
    return request.getfixturevalue(request.param)


def test_it_points_to_nothing_outside(page):
    for _, attributes in page.tags:
        for name in ("href", "src", "action", "srcset", "data"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:image/png;base64,"))
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'")
    assert "url(" not in page.text
    assert "@import" not in page.text


def test_every_name_is_given_once_and_every_reference_has_its_target(page):
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in page.tags:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert attributes.get(name, names[0]) in names
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in names


def test_headings_go_down_one_step_at_a_time_and_images_have_texts(page):
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(image["alt"] for image in page.all("img"))
    assert page.all("html")[0]["lang"] == "en"
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}


def test_the_curves_are_the_stores(swept, swept_page):
    data = swept_page.data
    [section] = data["sections"]
    assert section["metric"] == "accuracy"
    assert section["metrics"] == list(METRICS)
    titles = [panel["title"] for panel in section["panels"]]
    assert titles == ["two_castle · by_class", "fan · iid", "fan · by_class"]
    fields = {"network": "fan", "aggregator": "ios", "iterations": 4, "every": 2}
    specs = expand({**fields, "seed": [0, 1]})
    seeds = [Store(swept / "store").load(spec) for spec in specs]
    curves = [data["curves"][place] for place in section["panels"][1]["curves"]]
    [curve] = [curve for curve in curves if curve["rule"] == "ios"]
    assert curve["x"] == [0, 2, 4]
    for metric in METRICS:
        values = np.stack([run[metric] for run in seeds])
        for name, expected in (
            ("values", values.mean(0)),
            ("low", values.min(0)),
            ("high", values.max(0)),
        ):
            found = np.array([np.nan if v is None else v for v in curve[name][metric]])
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_baseline_is_in_every_panel_and_options_tell_rules_apart(swept_page):
    data = swept_page.data
    for panel in data["sections"][0]["panels"]:
        rules = ["weighted_mean", "ios", "baseline"]
        if "by_class" in panel["title"]:
            rules[1:1] = ["clipped_gossip:threshold=0.1", "clipped_gossip:threshold=0.3"]
        assert [data["curves"][place]["rule"] for place in panel["curves"]] == rules
    rules = data["rules"]
    assert rules["ios"]["label"] == "IOS"
    assert rules["clipped_gossip:threshold=0.3"]["label"] == "CG threshold=0.3"
    one, other = (rules[f"clipped_gossip:threshold={t}"] for t in (0.1, 0.3))
    assert one["marker"] == other["marker"] == LOOKS["clipped_gossip"].marker
    assert one["dash"] != other["dash"]


def test_baselines_with_different_options_are_not_mixed(tmp_path):
    store = Store(tmp_path)
    for fields in (
        {"aggregator": "ios"},
        {"poisoned": []},
        {"poisoned": 0, "aggregator": "weighted_mean:mixing=equal"},
    ):
        spec = RunSpec.read(fields)
        store.save(spec, made_up(spec, 3), origin())
    data = Page(write_report(tmp_path)).data
    rules = ["ios", "baseline:", "baseline:mixing=equal"]
    assert sorted(curve["rule"] for curve in data["curves"]) == sorted(rules)
    labels = [data["rules"][rule]["label"] for rule in rules]
    assert labels == ["IOS", "Baseline default", "Baseline mixing=equal"]
    assert all("low" not in curve for curve in data["curves"])


def test_figures_begin_with_what_they_show_and_tell_their_claims(reproduced_page):
    page = reproduced_page
    assert [section["metric"] for section in page.data["sections"]] == ["consensus_error"] * 2
    assert page.shown.count("does not hold") >= 2
    for text in ("✓ holds", "✗ does not hold", "? undecided", "✓ 2 hold", "✗ 2 do not hold"):
        assert text in page.shown
    assert "WeiMean 0.757, IOS 0.653." in page.shown
    assert "is at most 1×10⁻⁵" in page.shown
    assert "<sub>max</sub>" in page.text
    assert len(page.all("img")) == 2
    # Runs of no figure are counted, not shown.
    assert "2 further runs of the store belong to nothing on this page" in page.shown


def test_the_spec_on_the_page_makes_the_same_runs(swept, swept_page):
    blocks = re.findall(r"<code>(.*?)</code>", swept_page.text, flags=re.DOTALL)
    [text] = [block for block in blocks if "[[group]]" in block]
    found = expand(tomllib.loads(text.replace("&#34;", '"')))
    assert set(found) == {run.spec for run in Store(swept / "store").runs()}
    assert "bezoar sweep runs.toml" in swept_page.shown


def test_who_holds_what_is_told_with_the_poisoned_marked(swept, swept_page):
    spec = RunSpec.read({"network": "fan", "partition": "by_class"})
    labels = data.mnist().train_labels
    held = partition_of(spec, 10).holdings(labels, 10)
    table = swept_page.text.partition("by_class of mnist, 10 agents</h3>")[2].partition("</table>")
    rows = re.findall(r"<tr.*?</tr>", table[0])[1:]
    for agent, row in enumerate(rows):
        counts = [cell.replace(",", "") for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        assert counts[:10] == [str(n) if n else "·" for n in held[agent]]
        assert counts[10] == str(held[agent].sum())
        assert counts[11] == {4: "two_castle", 9: "fan"}.get(agent, "")


@pytest.mark.parametrize("name", ["two_castle", "line", "fan", "lower_bound", "torus"])
def test_a_drawing_has_a_dot_or_a_square_for_every_agent_inside_its_frame(name):
    network = networks.create(name)
    svg = str(drawing(network))
    width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
    dots = re.findall(r'<circle class="regular" cx="(.*?)" cy="(.*?)"', svg)
    squares = re.findall(r'<rect class="poisoned" x="(.*?)" y="(.*?)"', svg)
    assert len(dots) == len(network.regular)
    assert len(squares) == len(network.poisoned)
    assert svg.count("L") == len(network.edges)
    for x, y in dots + squares:
        assert 0 < float(x) < width
        assert 0 < float(y) < height
    assert f"{network.agents} agents" in svg


def test_the_theory_of_each_network_is_the_librarys(swept_page):
    for name in ("two_castle", "fan"):
        found = theory.overview(networks.create(name))
        words = found["verdict"].replace("δ_max", "δ max ")
        assert words in swept_page.shown
        for kind in ("uniform", "mixing"):
            assert f"{found['connectivity'][kind]['lambda']:.4f}" in swept_page.shown
        assert f"{found['weighted_mean']['lambda_prime']:.4f}" in swept_page.shown


def test_mixing_matrices_that_runs_use_have_a_theory_each():
    specs = [RunSpec.read({"aggregator": rule}) for rule in ("ios", "ios:mixing=equal")]
    [page] = network_pages(specs)
    assert [found["mixing"] for found in page.theory] == ["metropolis", "equal"]


def test_it_is_the_same_twice_and_leaves_nothing_else(reproduced, tmp_path):
    first, second = (
        write_report(reproduced, tmp_path / f"{name}.html").read_bytes() for name in "ab"
    )
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_it_lies_in_the_folder_unless_told_otherwise(reproduced, tmp_path):
    copy = shutil.copytree(reproduced, tmp_path / "results")
    assert write_report(str(copy)) == copy / "report.html"
    assert write_report(copy, tmp_path / "new" / "x.html").parent == tmp_path / "new"
    assert write_report(copy / "store") == copy / "store" / "report.html"


def test_a_hundred_long_runs_stay_below_a_few_megabytes(tmp_path):
    store = Store(tmp_path)
    specs = [RunSpec.read({"seed": seed, "network": "fan"}) for seed in range(100)]
    for place, spec in enumerate(specs):
        spec = spec.model_copy(update={"weight_decay": place / 100, "seed": 0})
        store.save(spec, made_up(spec, 1001), origin())
    path = write_report(tmp_path)
    assert path.stat().st_size < 4.5e6
    for curve in Page(path).data["curves"]:
        assert curve["x"][0] == 0
        assert curve["x"][-1] == 1000
        assert 100 < len(curve["x"]) <= 300


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
        store.save(spec, made_up(spec, 3, ("training_loss",)), origin())
    data = Page(write_report(tmp_path)).data
    titles = [panel["title"] for panel in data["sections"][0]["panels"]]
    assert len(set(titles)) == 6
    assert titles[0].startswith("two_castle · iid")
    assert any("poisoned 1, 2" in title for title in titles)
    assert any("random_labels" in title for title in titles)
    assert data["sections"][0]["metric"] == "training_loss"


def test_a_run_that_diverged_is_called_so(tmp_path):
    spec = RunSpec.read({"aggregator": "ios"})
    history = History(
        np.arange(2), {"accuracy": np.array([0.1, np.nan])}, torch.full((2, 2), torch.inf)
    )
    Store(tmp_path).save(spec, history, origin())
    page = Page(write_report(tmp_path))
    assert page.data["curves"][0]["values"]["accuracy"] == [0.1, None]
    assert "diverged" in page.shown


def test_a_network_file_that_is_gone_does_not_stop_it(tmp_path):
    file = tmp_path / "mine.edges"
    file.write_text("0 1\n1 2\n2 0\n")
    spec = RunSpec.read({"network": {"name": "from_file", "path": str(file)}, "poisoned": [2]})
    Store(tmp_path / "s").save(spec, made_up(spec, 3), origin())
    assert "3 agents, 3 links; poisoned: 2" in Page(write_report(tmp_path / "s")).shown
    file.unlink()
    assert f"cannot read {file}" in Page(write_report(tmp_path / "s")).shown


def test_damaged_and_removed_runs_are_left_out_and_counted(reproduced, tmp_path):
    copy = shutil.copytree(reproduced, tmp_path / "results")
    store = Store(copy / "store")
    keys = {c.key for n in ("fig1", "fig2") for c in Summary.load(copy / n).curves}
    shutil.rmtree(copy / "store" / "runs" / min(keys))
    assert "1 run behind this is no longer in the store" in Page(write_report(copy)).shown
    one, other, *_ = store.finished_keys()
    (copy / "store" / "runs" / one / "run.json").write_text("{")
    metrics = copy / "store" / "runs" / other / "metrics.parquet"
    metrics.write_bytes(metrics.read_bytes()[:100])
    shown = Page(write_report(copy / "store")).shown
    assert "2 runs of the store could not be read and are left out" in shown


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


def test_it_is_not_written_over_a_folder(reproduced, tmp_path):
    with pytest.raises(BezoarError, match="expected a file to write, found the folder"):
        write_report(reproduced, tmp_path)


@pytest.mark.parametrize("file", ["../secret.png", "/etc/hostname", "text.png"])
def test_only_images_beside_a_summary_get_in(tmp_path, file):
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\nsecret")
    summary = Summary(
        name="f", title="F", caption="", command="x", images=(Image(file=file, alt="An image"),)
    )
    summary.save(tmp_path / "f")
    (tmp_path / "f" / "text.png").write_text("no image")
    with pytest.raises(BezoarError, match=r"beside the summary|expected a PNG"):
        write_report(tmp_path)


def test_figures_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("table1", "fig10", "fig2"):
        Summary(name=name, title=name, caption="", command="x").save(tmp_path / name)
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
    for look in LOOKS.values():
        assert contrast(on_dark(look.colour), DARK) >= 3
    assert len({on_dark(look.colour) for look in LOOKS.values()}) == len(LOOKS)
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
