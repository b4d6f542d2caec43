"""The paper's figures: what is drawn, and written into them."""

import csv
import io
from itertools import combinations

import numpy as np
import pytest
from made_up_curves import LABELS, QUICK, MadeUp, made_up, reproduced, trained

from bezoar import networks, paper, report
from bezoar.paper import FIGURES, THRESHOLD_STUDY, Place, Variant
from bezoar.paper._figure_pages import data_text
from bezoar.paper._figures import partitions_figure
from bezoar.paper._threshold_study import THRESHOLDS
from bezoar.report import Curve, Panel

SMALL = Variant(scale="small")
CUT = "cut down: 200 of 500 training and 40 of 100 test images a class"


@pytest.mark.parametrize("name", ["fig2", "fig5"])
def test_a_column_a_partition_with_accuracy_above_and_consensus_error_below(drawn, tmp_path, name):
    paper.write_figure(tmp_path, reproduced(name))
    [figure] = drawn
    network, *above = figure["axes"][:4]
    _, *below = figure["axes"][4:]
    assert network["title"] == {"fig2": "Two-castle", "fig5": "Line"}[name]
    assert [axes["title"] for axes in above] == ["i.i.d.", "mild non-i.i.d.", "by class"]
    assert above[0]["ylabel"].startswith("test accuracy")
    assert below[0]["ylabel"] == "consensus error"
    assert {axes["yscale"] for axes in above} == {"linear"}
    assert {axes["yscale"] for axes in below} == {"log"}
    for row in (above, below):
        assert len({axes["ylim"] for axes in row}) == 1
        assert all(len(axes["lines"]) == 9 for axes in row)
    assert len({axes["xlim"] for axes in (*above, *below)}) == 1
    assert figure["legend"] == LABELS


def test_curves_are_those_of_the_runs(drawn, tmp_path):
    made = reproduced("fig7")
    paper.write_figure(tmp_path, made)
    [part] = made.parts
    for place, axes in enumerate(drawn[0]["axes"][1:4]):
        for line, run in zip(axes["lines"], part.runs[9 * place : 9 * place + 9], strict=True):
            assert np.array_equal(line, run["accuracy"])


def test_several_seeds_are_drawn_as_mean_and_range(drawn, tmp_path):
    made = reproduced("fig2", seeds=3)
    [part] = made.parts
    paper.write_figure(tmp_path, made)
    assert [axes["bands"] for axes in drawn[0]["axes"]] == [0, 9, 9, 0] * 2
    first = [
        run
        for run, (place, _) in zip(part.runs, part.specs, strict=True)
        if place == part.specs[0][0]
    ]
    assert len(first) == 3
    expected = np.mean([run["accuracy"] for run in first], axis=0)
    assert np.allclose(drawn[0]["axes"][1]["lines"][0], expected)


def test_a_band_is_as_wide_as_its_runs():
    runs = [MadeUp(np.arange(2), {"accuracy": np.array(v)}) for v in ([0.0, 1], [1, 1], [2, 4])]
    curve = Curve("ios", tuple(runs))
    low, high = curve.limits("accuracy")
    mean = curve.mean("accuracy")
    assert (mean.tolist(), low.tolist(), high.tolist()) == ([1, 2], [0, 1], [2, 4])


def test_figure_1_has_a_row_a_network(drawn, tmp_path):
    paper.write_figure(tmp_path, reproduced("fig1"))
    axes = drawn[0]["axes"]
    assert [axes[place]["title"] for place in (0, 3)] == ["Two-castle", "Fan"]
    assert [axes[place]["yscale"] for place in (1, 2, 4, 5)] == ["linear", "log"] * 2
    assert drawn[0]["legend"] == [*LABELS[:6], "Baseline"]


@pytest.mark.parametrize("seeds", [1, 2])
def test_figure_4_shows_one_rule_and_the_range_of_all(drawn, tmp_path, seeds):
    made = reproduced("fig4-mnist", seeds)
    [part] = made.parts
    paper.write_figure(tmp_path, made)
    plots = drawn[0]["axes"][1:]
    assert [axes["title"] for axes in plots] == ["i.i.d.", "mild non-i.i.d.", "by class"]
    for axes, partition in zip(plots, ("iid", "mild", "by_class"), strict=True):
        assert (axes["yscale"], len(axes["lines"]), len(axes["ranges"])) == ("log", 2, 2)
        runs = [
            run
            for place, curve in part.curves.by_place.items()
            for run in curve.runs
            if place.partition == partition and place.rule != "baseline"
        ]
        for metric, line, (low, high) in zip(
            ("heterogeneity", "disturbance"), axes["lines"], axes["ranges"], strict=True
        ):
            mean = part.curves.by_place[Place("two_castle", partition, "weighted_mean")].mean(
                metric
            )
            assert np.allclose(line, mean)
            assert low == pytest.approx(np.min([run[metric] for run in runs]))
            assert high == pytest.approx(np.max([run[metric] for run in runs]))
    assert drawn[0]["legend"][0] == "heterogeneity ξ, WeiMean"


def test_figure_10_draws_the_three_networks(drawn, tmp_path):
    summary = paper.write_figure_10(tmp_path / "fig10", "bezoar reproduce fig10")
    titles = [axes["title"] for axes in drawn[0]["axes"]]
    assert titles == ["(a) Two-castle", "(b) Line", "(c) Fan"]
    [table] = summary.tables
    assert table.rows[0] == (
        "Two-castle", "40", "4", "yes", "1/10", "1/9", "0.2192", "0.2222", "0.1111",
    )  # fmt: skip
    assert [row[3] for row in table.rows] == ["yes", "no", "yes"]


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        *((name, QUICK) for name in FIGURES),
        *(("fig2", Variant()), ("fig10", None), ("fig3", SMALL), ("fig12", SMALL)),
        ("threshold", QUICK),
    ],
)
def test_no_texts_overlap_and_none_is_cut_off(drawn, tmp_path, name, variant):
    if name == "fig10":
        paper.write_figure_10(tmp_path / "fig10", "")
    elif name == "threshold":
        paper.write_thresholds(tmp_path, trained(THRESHOLD_STUDY, variant, make=made_up))
    else:
        paper.write_figure(tmp_path, reproduced(name, variant=variant, note=CUT))
    assert len(drawn) == (2 if name == "fig4" else 1)  # a picture for each dataset
    for figure in drawn:
        assert len(figure["boxes"]) > 3
        for (text, box), (other, against) in combinations(figure["boxes"], 2):
            assert not box.overlaps(against), (text, other)
        frame = figure["frame"]
        for text, box in figure["boxes"]:
            assert frame.x0 <= box.x0, text
            assert box.x1 <= frame.x1, text
            assert frame.y0 <= box.y0, text
            assert box.y1 <= frame.y1, text


def test_a_shortened_figure_says_so_everywhere(drawn, tmp_path):
    summary = paper.write_figure(tmp_path, reproduced("fig2"))
    told = "40 iterations instead of 1,000"
    assert drawn[0]["title"].startswith(told)
    assert told in summary.caption
    assert told in summary.images[0].alt
    assert all("after 40 instead of 1,000 iterations" in claim.text for claim in summary.claims)
    assert {claim.verdict for claim in summary.claims} == {"undecided"}
    full = paper.write_figure(tmp_path, reproduced("fig2", variant=Variant()))
    assert drawn[1]["title"] == ""
    assert "instead" not in full.model_dump_json()
    assert {claim.verdict for claim in full.claims} != {"undecided"}


def test_the_small_scale_is_said_everywhere(drawn, tmp_path):
    made = reproduced("fig3", variant=SMALL, note=CUT)
    page = paper.write_figure(tmp_path, made)
    width = "ResNet18 of width 16"
    told = " ".join(drawn[0]["title"].split())
    assert told.startswith("Small scale, not the paper's: ResNet18 of width 16")
    for text in (told, page.caption, page.images[0].alt):
        assert width in text
        assert "small scale" in text.lower()
        assert CUT in text
    assert page.title == "Figure 3: CIFAR-100 on the two-castle network (small scale)"
    assert all("judged at small scale, on fewer images" in claim.text for claim in page.claims)
    rows = list(csv.DictReader(io.StringIO(data_text(made))))
    assert {row["scale"] for row in rows} == {"small"}
    assert {image.file for image in page.images} == {"fig3-small.png", "fig3-small.pdf"}
    assert page.name == "fig3-small"


def test_what_is_learned_instead_is_said(drawn, tmp_path):
    page = paper.write_figure(tmp_path, reproduced("fig12", variant=SMALL))
    assert "MNIST by class" in drawn[0]["title"]
    assert all("judged on MNIST, at small scale" in claim.text for claim in page.claims)
    assert "Softmax regression on MNIST" in page.caption
    assert [axes["title"] for axes in drawn[0]["axes"][::3]] == ["R = 9", "R = 8", "R = 7"]


def test_figure_4_has_a_picture_and_claims_for_each_dataset(drawn, tmp_path):
    made = reproduced("fig4")
    page = paper.write_figure(tmp_path, made)
    files = [f"fig4-quick-{name}.{end}" for name in ("mnist", "cifar100") for end in ("png", "pdf")]
    assert [image.file for image in page.images] == files
    assert [figure["title"].split(":")[0] for figure in drawn] == ["MNIST", "CIFAR-100"]
    texts = [claim.text for claim in page.claims]
    assert ["on MNIST" in text for text in texts] == [True] * 4 + [False] * 4
    assert all("on CIFAR-100" in text for text in texts[4:])
    assert len({panel.title for panel in page.panels}) == 6


@pytest.mark.parametrize("scale", ["paper", "quick"])
def test_thresholds_are_drawn_told_and_judged(drawn, tmp_path, scale):
    made = trained(THRESHOLD_STUDY, Variant(scale), make=made_up)
    page = paper.write_thresholds(tmp_path, made)
    study = made.parts[0]

    def final(network, rule):
        return study.curves.finals(network, "by_class", rule)[0]

    for axes, network in zip(drawn[0]["axes"], ("two_castle", "line", "fan"), strict=True):
        rules = ("centered_clipping", "clipped_gossip")
        for rule, line in zip(rules, axes["lines"], strict=False):
            ends = [final(network, f"{rule}:threshold={t}") for t in THRESHOLDS]
            assert line.tolist() == ends
        mean, baseline = axes["lines"][2:]
        assert set(mean) == {final(network, "weighted_mean")}
        assert set(baseline) == {final(network, "baseline")}
    assert drawn[0]["legend"] == ["CC", "CG", "WeiMean", "Baseline"]
    [table] = page.tables
    assert len(table.rows) == 2 + 2 * len(THRESHOLDS)
    low = min(final("fan", f"clipped_gossip:threshold={t}") for t in THRESHOLDS)
    assert f"CG between {low:.3f} (at " in page.caption
    assert len(page.claims) == 14
    assert all("with the clipping threshold 0.03" in claim.text for claim in page.claims)
    assert (page.name, page.title) == (
        "threshold" if scale == "paper" else "threshold-quick",
        "The clipping threshold of CC and CG",
    )


def test_a_rules_look_is_the_same_in_every_figure(drawn, tmp_path):
    place, spec = FIGURES["fig2"].comparisons()[0].runs()[0]
    panels = [Panel("x", (Curve("ios", (made_up(place, spec),)),), networks.fan())]
    partitions_figure(tmp_path / "a", "Fan", panels)
    report.panels_figure(tmp_path / "b.png", panels)
    assert drawn[0]["legend"] == drawn[1]["legend"] == ["IOS"]
