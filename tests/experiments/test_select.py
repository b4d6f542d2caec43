import csv

import numpy as np
import pyarrow.parquet as pq
import pytest
from store_runs import Measured, document, fill, names, new_store, save, spec

from bezoar import BezoarError
from bezoar.experiments import RunSpec, export_runs, field_text, matches, read_conditions


@pytest.mark.parametrize(
    ("fields", "conditions", "expected"),
    [
        ({}, [], True),
        ({"aggregator": "ios"}, ["aggregator=ios"], True),
        ({"aggregator": "ios:estimate=2"}, ["aggregator=ios"], True),
        ({"aggregator": "ios:estimate=2"}, ["aggregator=ios:estimate=2"], True),
        ({"aggregator": "ios:estimate=2"}, ["aggregator = ios:estimate=2.0"], True),
        (
            {"aggregator": "ios:estimate=2,mixing=equal"},
            ["aggregator=ios:mixing=equal,estimate=2"],
            True,
        ),
        ({"aggregator": "ios:estimate=2"}, ["aggregator=ios:estimate=3"], False),
        ({"aggregator": "ios:estimate=2"}, ["aggregator=ios:mixing=equal"], False),
        (
            {"aggregator": {"name": "ios", "estimate": "true"}},
            ["aggregator=ios:estimate=exact"],
            True,
        ),
        ({"aggregator": "ios"}, ["aggregator=ios:mixing=metropolis,keep_own=false"], True),
        ({"aggregator": "ios:keep_own=true"}, ["aggregator=ios:keep_own=true"], True),
        ({"aggregator": "ios"}, ["aggregator=io"], False),
        ({"aggregator": "ios"}, ["aggregator=faba", "aggregator=ios"], True),
        ({"aggregator": "ios"}, ["aggregator=ios", "network=line"], False),
        ({"seed": 3}, ["seed=3"], True),
        ({"seed": 3}, ["seed=30"], False),
        ({"weight_decay": 0.0}, ["weight_decay=0"], True),
        ({"keep_models": True}, ["keep_models=true"], True),
        ({"poisoned": [3, 5]}, ["poisoned=3,5"], True),
        ({"poisoned": [3]}, ["poisoned=3"], False),
        ({"poisoned": [3]}, ["poisoned=3,"], True),
        ({"poisoned": 3}, ["poisoned=3"], True),
        ({"poisoned": []}, ["poisoned=none"], True),
        ({}, ["poisoned=default", "metrics=all"], True),
        ({"metrics": ["accuracy", "test_loss"]}, ["metrics=accuracy,test_loss"], True),
    ],
)
def test_conditions_on_fields(fields, conditions, expected):
    read = RunSpec.read(document(**fields))
    wanted = read_conditions(conditions)
    assert matches(read, wanted) is expected
    assert matches(RunSpec.recall(read.document()), wanted) is expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("aggrgator=ios", "where: 'aggrgator' is not known; allowed: aggregator, "),
        ("ios", "where: expected field=value, found 'ios'"),
        ("=ios", "where: expected field=value, found '=ios'"),
        ("seed=", "where: expected field=value, found 'seed='"),
    ],
)
def test_conditions_that_make_no_sense(condition, message):
    with pytest.raises(BezoarError, match=message):
        read_conditions([condition])


def test_a_condition_on_options_is_written_as_they_are():
    with pytest.raises(BezoarError, match="options are written name=value, found 'estimate'"):
        matches(RunSpec.read({}), read_conditions(["aggregator=ios:estimate"]))


@pytest.fixture
def runs(tmp_path):
    store = new_store(tmp_path)
    one = spec(aggregator="ios:estimate=2", poisoned=[2])
    other = spec(seed=7, weight_decay=0.5, metrics=["test_loss"])
    loss = Measured(np.array([0]), {"test_loss": np.array([0.1 + 0.2])}, diverged=True)
    return [*fill(store, one), save(store, other, loss)]


def test_parquet_holds_every_measurement_and_its_spec(runs, tmp_path):
    [path] = export_runs(runs, tmp_path / "new" / "runs.parquet")
    rows = pq.ParquetFile(path).read().to_pylist()
    assert len(rows) == 3 + 1
    first, last = rows[1], rows[-1]
    assert first["key"] == runs[0].key
    assert (first["network"], first["aggregator"]) == ("fan", "ios:estimate=2")
    assert (first["poisoned"], last["poisoned"]) == ("2,", "default")
    assert (first["seed"], last["seed"]) == (0, 7)
    assert (first["iteration"], first["accuracy"], first["test_loss"]) == (10, 0.5, None)
    assert (last["iteration"], last["accuracy"], last["test_loss"]) == (0, None, 0.1 + 0.2)
    assert (first["diverged"], last["diverged"]) == (False, True)
    assert last["weight_decay"] == 0.5
    assert np.isnan(rows[0]["poison_share"])


def test_csv_holds_the_same(runs, tmp_path):
    [parquet], [text] = (export_runs(runs, tmp_path / f"runs{end}") for end in (".parquet", ".csv"))
    table = pq.ParquetFile(parquet).read()
    with open(text, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == table.column_names
    for found, expected in zip(rows, table.to_pylist(), strict=True):
        for name, value in expected.items():
            if isinstance(value, float):
                np.testing.assert_equal(float(found[name]), value)  # every digit, and NaN
            else:
                text = "" if value is None else str(value)
                assert found[name] == (text.lower() if isinstance(value, bool) else text)


def test_numbers_that_some_runs_do_not_give_are_null(tmp_path):
    store = new_store(tmp_path)
    runs = fill(store, spec(), spec(batch=4, samples=30), spec(model="mlp"))
    [path] = export_runs(runs, tmp_path / "runs.parquet")
    rows = pq.ParquetFile(path).read().to_pylist()
    found = {(row["batch"], row["samples"], row["gradient_samples"]) for row in rows}
    assert found == {(None, None, None), (4, 30, None), (32, None, 256)}


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_large_numbers_are_exported_with_every_digit(tmp_path, ending):
    seeds = [3, 2**63, 2**128 - 1]
    runs = fill(new_store(tmp_path), *(spec(seed=seed, batch=seed) for seed in seeds))
    [path] = export_runs(runs, tmp_path / f"runs{ending}")
    if ending == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = pq.ParquetFile(path).read().to_pylist()
    assert {(int(row["seed"]), int(row["batch"])) for row in rows} == {(n, n) for n in seeds}


def test_runs_are_exported_as_the_store_gives_them(tmp_path):
    """One after the other, and into a file that is named by a text."""
    store = new_store(tmp_path)
    save(store, spec(), Measured(agents={"accuracy": np.zeros((3, 10))}))
    expected = [tmp_path / "runs.csv", tmp_path / "runs-agents.csv"]
    assert export_runs(store.runs(), str(expected[0])) == expected


def test_nothing_can_be_exported_too(tmp_path):
    [path] = export_runs([], tmp_path / "runs.csv")
    assert path.read_text().splitlines() == ['"key","iteration"']


def test_an_export_is_whole_or_not_there(runs, tmp_path, monkeypatch):
    path = tmp_path / "out" / "runs.csv"
    export_runs(runs[:1], path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        export_runs(runs, path)
    assert names(path.parent) == ["runs.csv"]
    assert path.read_bytes() == before


def test_an_export_needs_a_known_ending(runs, tmp_path):
    with pytest.raises(BezoarError, match=r"ends in .csv or .parquet, found '.*runs.xlsx'"):
        export_runs(runs, tmp_path / "runs.xlsx")
    assert "runs.xlsx" not in names(tmp_path)


def test_fields_are_written_as_on_the_command_line():
    one = RunSpec.read({"aggregator": {"name": "ios", "keep_own": True}, "poisoned": [4, 2]})
    texts = [field_text(one, field) for field in ("aggregator", "poisoned", "keep_models")]
    assert texts == ["ios:keep_own=true", "2,4", "false"]


@pytest.mark.parametrize("agents", [(), (3,), (3, "b"), ("a, b",), ('"a" b', "c"), ("a\nb",)])
def test_poisoned_agents_are_written_as_they_are_read(agents):
    one = RunSpec.read({"poisoned": agents})
    text = field_text(one, "poisoned")
    assert RunSpec.read({"poisoned": text}).poisoned == one.poisoned == agents
    assert matches(one, {"poisoned": [text]})
