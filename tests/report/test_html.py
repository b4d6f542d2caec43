"""The report as a document: whole, well formed and true to the store."""

import re
import shutil
import tomllib
from itertools import pairwise

import numpy as np
import pytest
from html_page import Page
from report_results import made_up, save

from bezoar import data, networks, theory
from bezoar.experiments import RunSpec, Store, expand, partition_of, run_key, spec_of
from bezoar.report import look, write_report
from bezoar.report._html import templates
from bezoar.report._network_pages import network_pages, partition_tables
from bezoar.report._specs import short_names
from bezoar.training import METRICS


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
    assert section["metric"] == "accuracy_mean"
    assert sorted(section["metrics"]) == sorted(METRICS)
    assert section["metrics"][:2] == ["accuracy_mean", "accuracy_worst"]
    titles = [panel["title"] for panel in section["panels"]]
    assert titles == ["two_castle · by_class", "fan · iid", "fan · by_class"]
    fields = {"network": "fan", "aggregator": "ios", "iterations": 4, "every": 2}
    specs = expand({**fields, "seed": [0, 1]})
    seeds = [Store(swept / "store").load(run_key(spec)) for spec in specs]
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
    assert one["marker"] == other["marker"] == look("clipped_gossip").marker
    assert one["dash"] != other["dash"]


def test_baselines_with_different_options_are_not_mixed(tmp_path):
    store = Store(tmp_path)
    for fields in (
        {"aggregator": "ios"},
        {"poisoned": []},
        {"poisoned": 0, "aggregator": "weighted_mean:mixing=equal"},
    ):
        spec = RunSpec.read(fields)
        save(store, spec, made_up(spec, 3))
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
    assert set(found) == {spec_of(run) for run in Store(swept / "store").runs()}
    assert "bezoar sweep runs.toml" in swept_page.shown


def test_partitions_are_told_with_the_poisoned_marked(swept, swept_page):
    spec = RunSpec.read({"network": "fan", "partition": "by_class"})
    labels = data.mnist().train_labels
    held = partition_of(spec, 10).holdings(labels, 10)
    after = swept_page.text.partition("by_class of mnist, 10 agents</span></caption>")[2]
    table = after.partition("</table>")
    rows = re.findall(r"<tr.*?</tr>", table[0])[1:]
    for agent, row in enumerate(rows):
        counts = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert counts[:10] == [f"{n:,}" if n else "·" for n in held[agent]]
        assert counts[10] == f"{held[agent].sum():,}"
        assert counts[11] == {4: "two_castle", 9: "fan"}.get(agent, "")


def test_parts_of_the_data_have_a_partition_each(tmp_path):
    store = Store(tmp_path)
    for samples in (100, 1000):
        spec = RunSpec.read({"samples": samples})
        save(store, spec, made_up(spec, 3))
    tables = partition_tables(list(store.runs()))
    held = {table.title: sum(int(row[11]) for row in table.rows) for table in tables}
    assert held == {
        "iid of 100 samples of mnist, 10 agents": 100,
        "iid of 1,000 samples of mnist, 10 agents": 1000,
    }


@pytest.mark.parametrize("name", ["two_castle", "line", "fan", "lower_bound", "torus"])
def test_a_drawing_has_a_dot_or_a_square_for_every_agent_inside_its_frame(name):
    network = networks.create(name)
    svg = str(templates().get_template("parts.html.jinja").module.drawing(network))
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


def test_mixing_matrices_that_runs_use_have_a_theory_each(tmp_path):
    for rule in ("ios", "ios:mixing=equal"):
        spec = RunSpec.read({"aggregator": rule, "network": "fan"})
        save(Store(tmp_path), spec, made_up(spec, 3))
    pages = network_pages(list(Store(tmp_path).runs()))
    found = {page.title: page.tables[0].rows for page in pages}
    for title, mixing in (("fan", "metropolis"), ("fan, equal mixing matrix", "equal")):
        *_, (rule, _, constant, value, _) = found.pop(title)
        assert (rule, constant) == ("WeiMean", "λ'")
        assert value == f"{theory.mixing_gap(networks.fan(), mixing):.4f}"
    assert not found


def test_formulas_are_set_and_not_broken_between_lines():
    page = templates().from_string("{{ text|maths }}")
    text = page.render(text="K ≥ 1.07e+03 L², ρ < -0.5 at δ_max")
    assert text == "K\u00a0≥\u00a01.07×10³\u00a0L², ρ\u00a0&lt;\u00a0−0.5 at δ<sub>max</sub>"


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
        save(store, spec, made_up(spec, 1001))
    path = write_report(tmp_path)
    assert path.stat().st_size < 4.5e6
    for curve in Page(path).data["curves"]:
        assert curve["x"][0] == 0
        assert curve["x"][-1] == 1000
        assert 100 < len(curve["x"]) <= 300


def test_files_are_called_by_their_names_and_isolated_from_the_text_around(tmp_path):
    store = Store(tmp_path / "store")
    (tmp_path / "مكتب").mkdir()
    for name, edges in (("office.edges", "0 1\n1 2\n2 0\n"), ("مكتب/café.edges", "0 1\n1 2\n")):
        (tmp_path / name).write_text(edges)
        for seed in (0, 1):
            fields = {"network": str(tmp_path / name), "poisoned": [2], "seed": seed}
            for rule in ("ios", "weighted_mean"):
                spec = RunSpec.read({**fields, "aggregator": rule})
                save(store, spec, made_up(spec, 3))
    page = Page(write_report(tmp_path))
    titles = [panel["title"] for panel in page.data["sections"][0]["panels"]]
    assert sorted(titles) == ["café.edges · iid", "office.edges · iid"]
    before_the_spec = page.shown.partition("Save this spec")[0]
    assert str(tmp_path) not in before_the_spec
    assert str(tmp_path / "office.edges") in page.shown  # to run it again
    for name in ("office.edges", "café.edges"):
        assert f"<bdi>{name}</bdi>" in page.text
    assert "Which rule did best" in page.shown


def test_two_files_of_one_name_keep_their_folders(tmp_path):
    specs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.edges").write_text("0 1\n1 2\n2 0\n")
        specs.append(RunSpec.read({"network": str(tmp_path / name / "net.edges")}))
    assert short_names(specs) == {}
    assert list(short_names(specs[:1]).values()) == ["net.edges"]


def test_what_is_done_before_an_attack_of_the_users_own_stays_in_its_name(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from bezoar.attacks import SignFlip\n\nclass Mine(SignFlip): pass\n")
    spec = RunSpec.read({"attack": f"label_flip+{file}:Mine"})
    assert list(short_names([spec]).values()) == ["label_flip+mine.py:Mine"]


def test_symbols_are_explained(page):
    meanings = page.shown.partition("Symbols δ")[2]
    for word in ("Heterogeneity", "Disturbance", "Contraction constant", "come to agree"):
        assert word in meanings
