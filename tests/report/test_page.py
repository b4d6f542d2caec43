"""Pages and tables: kept as files, and read again."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_results import made_up, save

from bezoar.experiments import RunSpec, Store, spec_of
from bezoar.report import Curve, Page, Panel, Table, ends_table

#: A file as bezoar 0.1.0 wrote it, but for the keys of its runs.
FORMAT_1 = {
    "format": 1,
    "name": "fig7",
    "title": "Figure 7: MNIST on the fan network",
    "caption": "Softmax regression on MNIST.",
    "command": "bezoar reproduce fig7 --quick",
    "images": [{"file": "fig7.png", "alt": "A drawing of the network."}],
    "data": ["fig7.csv"],
    "tables": [{"title": "Ends", "columns": ["rule", "i.i.d."], "rows": [["IOS", "0.848"]]}],
    "claims": [
        {
            "text": "IOS ends above the weighted mean.",
            "verdict": "holds",
            "measured": "Final accuracy: IOS 0.848, WeiMean 0.841.",
            "margins": [0.007],
            "resolution": 0.01,
            "paper": "Section IV, scenario (iii)",
        }
    ],
    "metrics": ["accuracy", "consensus_error"],
}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for rule in ("ios", "clipped_gossip:threshold=0.1"):
        for seed in (1, 0):
            spec = RunSpec.read({"aggregator": rule, "seed": seed, "network": "fan"})
            save(store, spec, made_up(spec, 3))
    return store


def test_a_file_written_before_is_read_and_written_again_as_it_was(store, tmp_path):
    runs = sorted(store.runs(), key=lambda run: (str(spec_of(run).aggregator), spec_of(run).seed))
    curves = [
        {"key": run.key, "panel": "Fan, i.i.d.", "rule": spec_of(run).aggregator.name}
        for run in runs
    ]
    (tmp_path / "fig7").mkdir()
    document = FORMAT_1 | {"curves": curves}
    (tmp_path / "fig7" / "summary.json").write_text(json.dumps(document))
    page = Page.load(tmp_path / "fig7", store.load)
    [panel] = page.panels
    assert panel.title == "Fan, i.i.d."
    assert [(c.rule, c.options) for c in panel.curves] == [
        ("clipped_gossip", "threshold=0.1"),
        ("ios", ""),
    ]
    assert [[spec_of(run).seed for run in c.runs] for c in panel.curves] == [[0, 1], [0, 1]]
    assert page.verdicts() == {"holds": 1}
    assert page.missing == ()
    page.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "summary.json").read_text()) == document
    assert len(Page.load(tmp_path / "fig7").missing) == 4  # of no store


def test_curves_of_one_rule_with_several_options_stay_apart(tmp_path):
    store = Store(tmp_path / "store")
    curves = []
    for rule in ("clipped_gossip:threshold=0.1", "clipped_gossip:threshold=0.3"):
        spec = RunSpec.read({"aggregator": rule})
        curves.append(Curve.stored([save(store, spec, made_up(spec, 3))]))
    Page(name="a", title="A", panels=(Panel("p", tuple(curves)),)).save(tmp_path / "a")
    [panel] = Page.load(tmp_path / "a", store.load).panels
    assert [curve.name for curve in panel.curves] == [curve.name for curve in curves]
    assert [len(curve.runs) for curve in panel.curves] == [1, 1]


def test_a_curve_is_where_all_its_runs_were_measured():
    spec = RunSpec()
    long, short = made_up(spec, 7), made_up(spec, 4)
    curve = Curve("ios", (long, short))
    assert curve.iterations.tolist() == [0, 1, 2, 3]
    expected = np.stack([long["accuracy"][:4], short["accuracy"]])
    assert np.array_equal(curve.values("accuracy"), expected)
    assert np.array_equal(curve.mean("accuracy"), expected.mean(0))


def test_the_options_of_a_rule_in_a_file_are_told_apart_from_its_name(tmp_path):
    file = tmp_path / "rules.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom bezoar.aggregators import IOS\n"
        "@dataclass(frozen=True)\nclass Mine(IOS):\n    power: float = 1.0\n"
    )
    for typed, options in ((f"{file}:Mine", ""), (f"{file}:Mine:power=2.0", "power=2.0")):
        spec = RunSpec.read({"aggregator": typed})
        curve = Curve.of(spec.aggregator, (made_up(spec, 3),))
        assert (curve.rule, curve.options, curve.name) == (f"{file}:Mine", options, typed)


def test_ends_are_told_the_shorter_way_round():
    curves = tuple(Curve(rule, (made_up(RunSpec(), 3),)) for rule in ("ios", "baseline"))
    few = ends_table("Ends", [Panel("a", curves)], ("accuracy",))
    assert few.columns == ("rule", "a")
    assert [row[0] for row in few.rows] == ["IOS", "Baseline"]
    many = ends_table("Ends", [Panel(title, curves) for title in "abc"], ("accuracy",))
    assert many.columns == ("", "IOS", "Baseline")
    assert [row[0] for row in many.rows] == ["a", "b", "c"]
    assert many.rows[0][1:] == tuple(row[1] for row in few.rows)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5))
def test_shades_are_shares_of_the_largest_number(numbers):
    row = ("agent", *(str(number) if number else "·" for number in numbers), "7", "text")
    table = Table(title="", columns=row, rows=(row,), shaded=len(numbers))
    [shades] = table.shades()
    assert shades == [number / (max(numbers) or 1) for number in numbers]


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (("0.1", "1.2e-05", "–", "diverged", ""), True),
        (("0.84 (0.83…0.85)", "12", "5,923"), True),
        (("0.1111 ξ²", "∞"), True),
        (("fan", "0.1"), False),
        (("1f62bb6e",), False),
        (("", ""), False),
    ],
)
def test_columns_of_numbers_are_known(cells, numeric):
    assert Table.of("", ("x",), ((cell,) for cell in cells)).is_numeric(0) == numeric
