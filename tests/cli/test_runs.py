import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from store_runs import fill, new_store, spec
from typer.testing import CliRunner

from bezoar import BezoarError
from bezoar.cli._main import app
from bezoar.experiments import spec_of


def bezoar(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def store(tmp_path):
    store = new_store(tmp_path)
    fill(
        store,
        *(
            spec(network=network, aggregator=rule, seed=seed)
            for network in ("fan", "line")
            for rule in ("ios", "centered_clipping:threshold=0.1")
            for seed in (0, 1)
        ),
    )
    return store


def test_a_table_of_what_differs_below_what_is_common(store):
    result = bezoar("runs", store.path)
    assert result.exit_code == 0, result.output
    title, *lines = result.output.splitlines()
    assert title == f"8 runs in {store.path}"
    head = next(place for place, line in enumerate(lines) if line.strip().startswith("key"))
    common = " ".join(line.strip() for line in lines[:head])
    assert common.startswith("All with partition iid, attack label_flip, poisoned default, ")
    assert "network" not in common
    rows = [line.split() for line in lines[head:] if line.strip()]
    assert rows[0] == ["key", "network", "aggregator", "seed", "accuracy", "age"]
    assert [row[1:5] for row in rows[2:]] == [
        [network, rule, seed, "0.9000"]
        for network in ("fan", "line")
        for rule in ("centered_clipping:threshold=0.1", "ios")
        for seed in "01"
    ]
    keys = {run.key[:8]: spec_of(run) for run in store.runs()}
    assert all(str(keys[row[0]].aggregator) == row[2] for row in rows[2:])


def test_the_store_is_found_in_results_by_default(store, tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    store.path.rename(tmp_path / "results" / "store")
    monkeypatch.chdir(tmp_path)
    expected = bezoar("runs", "results/store").output
    assert expected.startswith("8 runs")
    assert bezoar("runs").output == bezoar("runs", "list").output == expected
    assert bezoar("runs", "results").output == expected
    assert bezoar("runs", "--where", "seed=0").output.startswith("4 of 8 runs")


def test_filters(store):
    def seen(*conditions):
        options = [word for condition in conditions for word in ("--where", condition)]
        documents = json.loads(bezoar("runs", store.path, "--json", *options).output)
        return {(d["spec"]["network"]["name"], d["spec"]["seed"]) for d in documents}

    assert seen("aggregator=ios", "network=fan") == {("fan", 0), ("fan", 1)}
    assert seen("seed=0", "network=fan", "network=line") == {("fan", 0), ("line", 0)}
    assert seen("aggregator=mean") == set()
    assert (
        bezoar("runs", store.path, "--where", "seed=9").output == f"0 of 8 runs in {store.path}\n"
    )
    refused = bezoar("runs", store.path, "--where", "sede=9").exception
    assert isinstance(refused, BezoarError)
    assert "where: 'sede' is not known; allowed: seed, " in str(refused)


def test_json_has_everything_but_the_curves(store):
    documents = json.loads(bezoar("runs", store.path, "--json").output)
    assert len(documents) == 8
    run = store.load(documents[0]["key"])
    assert documents[0] == {
        "key": run.key,
        "path": str(run.path),
        "spec": spec_of(run).model_dump(mode="json"),
        "diverged": False,
        "final": {"accuracy": 0.9, "poison_share": 1 / 3},
        "provenance": run.provenance,
    }


def test_export(store, tmp_path):
    path = tmp_path / "runs.parquet"
    result = bezoar("runs", store.path, "--where", "network=fan", "--export", path)
    assert f"Exported: {path}" in result.output
    table = pq.ParquetFile(path).read()
    assert table.num_rows == 4 * 3
    assert set(table["network"].to_pylist()) == {"fan"}
    refused = bezoar("runs", store.path, "--export", tmp_path / "runs.xlsx").exception
    assert "export: expected a name that ends in .csv or .parquet" in str(refused)


def test_show_one_run(store):
    [run, *_] = store.runs()
    result = bezoar("runs", "show", run.key[:10], store.path)
    assert result.exit_code == 0, result.output
    for word in (run.key, str(spec_of(run).aggregator), "After 20 iterations", "machine.cores"):
        assert word in result.output
    document = json.loads(bezoar("runs", "show", run.key, store.path, "--json").output)
    assert document["provenance"] == run.provenance
    refused = bezoar("runs", "show", "abcdef012345", store.path).exception
    assert "begins with 'abcdef012345'" in str(refused)


def test_a_broken_run_is_told_and_cleared_up(store):
    [run, *_] = store.runs()
    (run.path / "metrics.parquet").write_bytes(b"")
    result = bezoar("runs", store.path)
    assert result.exit_code == 0
    assert result.stdout.startswith("7 runs in ")
    assert "metrics.parquet is not as it was written" in result.stderr
    planned = bezoar("runs", "gc", store.path, "--dry-run").output
    assert f"runs/{run.key}" in planned
    assert "1 folder would be removed" in planned
    assert run.path.exists()
    [gone] = json.loads(bezoar("runs", "gc", store.path, "--json").output)
    assert (gone["path"], gone["reason"]) == (str(run.path), "broken")
    assert not run.path.exists()
    assert bezoar("runs", "gc", store.path).output == "0 folders removed, 0 bytes\n"


def test_where_there_is_no_store(tmp_path):
    for command in (["runs"], ["runs", "gc"], ["runs", "show", "abcd"]):
        refused = bezoar(*command, tmp_path).exception
        assert str(refused).startswith(f"store: there is none at {tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_looking_at_runs_imports_no_torch(store):
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from bezoar.cli._main import app\n"
        f"result = CliRunner().invoke(app, ['runs', {str(store.path)!r}])\n"
        "assert '8 runs' in result.output, result.output\n"
        "heavy = {'torch', 'matplotlib', 'networkx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_schema_is_json():
    schema = json.loads(bezoar("schema").output)
    assert "aggregator" in schema["properties"]
