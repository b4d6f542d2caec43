import json
import re
import signal
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from sweep_server import some_digits
from typer.testing import CliRunner

from bezoar import BezoarError, data
from bezoar._numbers import duration
from bezoar.cli import _sweep
from bezoar.cli._main import app
from bezoar.experiments import Failure, RunSpec, Store, StoreError, expand, make_plan, read_sweep

ROOT = Path(__file__).parents[2]

DOCUMENT = """
dataset = "some_digits"
partition = "by_class"
network = ["fan", "two_castle"]
iterations = 4
every = 2
metrics = ["accuracy", "consensus_error"]

[[group]]
aggregator = ["ios", { name = "clipped_gossip", threshold = [0.1, 1.0] }]

[[group]]
poisoned = []
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    digits = some_digits(20)
    monkeypatch.setitem(data.DATASETS, "some_digits", lambda: digits)


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(DOCUMENT)
    return path


def inside(*arguments):
    return CliRunner().invoke(app, ["sweep", *(str(argument) for argument in arguments)])


def test_the_plan_the_work_and_what_came_of_it(spec, tmp_path, monkeypatch):
    monkeypatch.setattr("bezoar.cli._progress.time", SimpleNamespace(monotonic=lambda: 0.0))
    store = tmp_path / "results" / "store"
    plan = inside(spec, "--store", store, "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert plan.stdout == "8 runs: 0 already there, 8 new in 1 group, about 1 s\n"
    assert not store.exists()
    result = inside(spec, "--store", store)
    assert result.exit_code == 0, result.output
    assert "8 new in 1 group" in result.stderr
    assert "by_class on fan, two_castle, seed 0: 8 runs, done in 1 s" in result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["aggregator", "network", "poisoned", "accuracy"] in lines
    named = [line for line in lines if line[:1] == ["clipped_gossip:threshold=0.1"]]
    assert [line[1:3] for line in named] == [["fan", "default"], ["two_castle", "default"]]
    assert all(0 < float(line[3]) < 1 for line in named)
    assert ["weighted_mean", "fan", "none"] in [line[:3] for line in lines]
    assert f"Report: bezoar report {tmp_path / 'results'}" in result.stdout
    again = inside(spec, "--store", store)
    assert "8 runs, nothing new to compute" in again.stderr
    assert "0 new runs" in again.stdout
    partly = spec.with_name("more.toml")
    partly.write_text(DOCUMENT.replace('["ios"', '["ios", "median"'))
    plan = inside(partly, "--store", store, "--dry-run")
    assert plan.stdout == "10 runs: 8 already there, 2 new in 1 group, about 1 s\n"


def test_seeds_share_a_row_and_the_agents_own_accuracies_come_first(spec, tmp_path):
    spec.write_text(
        'dataset = "some_digits"\niterations = 2\nevery = 2\nseed = [0, 1, 2]\n'
        'network = "fan"\naggregator = ["ios", "local"]\n'
    )
    result = inside(spec, "--store", tmp_path / "s")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert "mean and standard deviation over 3 seeds" in result.stdout
    assert ["aggregator", "accuracy_mean", "accuracy_worst", "accuracy"] in lines
    [row] = [line for line in lines if line[:1] == ["local"]]
    runs = [run for run in Store(tmp_path / "s").runs() if run.spec["aggregator"] == "local"]
    last = [run["accuracy_mean"][-1] for run in runs]
    mean, spread = f"{statistics.mean(last):.4f}", f"±{statistics.stdev(last):.4f}"
    assert row[1:3] == [mean, spread]
    assert "accuracy_worst: test accuracy of the regular agents' own models" in result.stdout


def test_json_for_machines(spec, tmp_path):
    plan = json.loads(inside(spec, "--store", tmp_path / "s", "--dry-run", "--json").stdout)
    assert (plan["new"], plan["finished"], plan["failures"]) == (8, 0, [])
    assert [len(group["runs"]) for group in plan["groups"]] == [8]
    result = inside(spec, "--store", tmp_path / "s", "--json", "--workers", 1)
    found = json.loads(result.stdout)
    assert [run["key"] for run in found["runs"]] == plan["groups"][0]["runs"]
    assert found["runs"][0]["spec"]["aggregator"]["name"] == "ios"
    assert set(found["runs"][0]["final"]) == {"accuracy", "consensus_error"}
    assert found["new"] == 8


def test_failures_are_listed_with_their_specs_and_the_exit_code_tells(spec, tmp_path):
    spec.write_text(
        DOCUMENT + '\n[[group]]\nnetwork = "line"\naggregator = "faba"\npoisoned=[3,4,5]'
    )
    result = inside(spec, "--store", tmp_path / "s")
    assert result.exit_code == 1
    assert "9 runs: 0 already there, 8 new in 1 group, about 1 s; 1 impossible" in result.stderr
    assert "failed: aggregator faba: impossible at agent 4 of the line network" in result.stderr
    assert "network = 'line', poisoned = '3,4,5', aggregator = 'faba'" in result.stderr
    assert len(Store(tmp_path / "s").finished_keys()) == 8
    assert "failed" in result.stdout  # its place in the table
    found = json.loads(inside(spec, "--store", tmp_path / "s", "--json").stdout)
    assert found["failures"][0]["spec"]["poisoned"] == [3, 4, 5]
    plan = inside(spec, "--store", tmp_path / "s", "--dry-run")
    assert plan.exit_code == 0
    assert "failed: aggregator faba" in plan.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("iterations = 4", "iteratons = 4"), "no field 'iteratons'; allowed: iterations, "),
        (('["ios"', '["iso"'), "aggregator: 'iso' is not known; allowed: ios, "),
        (("every = 2", "every = [2, 0]"), "every: expected"),
        (("threshold", "treshold"), "no option 'treshold'; allowed: threshold"),
        (("[[group]]", "[[group"), "is not valid TOML"),
    ],
)
def test_a_typo_is_one_line_before_anything_is_computed(spec, tmp_path, change, message):
    spec.write_text(DOCUMENT.replace(*change))
    result = inside(spec, "--store", tmp_path / "s")
    assert isinstance(result.exception, BezoarError)
    assert message in str(result.exception)
    assert not (tmp_path / "s").exists()


def test_a_spec_or_store_that_is_not_there(tmp_path, spec):
    missing = inside(tmp_path / "nothing.toml").exception
    assert f"spec: cannot read {tmp_path / 'nothing.toml'}" in str(missing)
    (tmp_path / "file").write_text("")
    error = inside(spec, "--store", tmp_path / "file").exception
    assert isinstance(error, StoreError)


def stopped_by(error, monkeypatch):
    def stop(*_, **__):
        raise error

    monkeypatch.setattr(_sweep, "sweep", stop)


def test_what_to_do_after_an_interruption_or_a_full_disk(spec, tmp_path, monkeypatch):
    stopped_by(KeyboardInterrupt(), monkeypatch)
    result = inside(spec, "--store", tmp_path / "s")
    assert result.exit_code == 130
    advice = "what is finished is kept, and the same command goes on from there"
    assert result.stderr == f"bezoar: interrupted; {advice}\n"
    stopped_by(StoreError("store: cannot write: No space left"), monkeypatch)
    error = inside(spec, "--store", tmp_path / "s").exception
    assert str(error) == f"store: cannot write: No space left; {advice}"


def test_control_c_in_a_real_process(tmp_path):
    """On the whole of MNIST, in the middle of training."""
    spec, store = tmp_path / "spec.toml", tmp_path / "store"
    spec.write_text('network = "fan"\naggregator = "ios"\niterations = 100000\nmetrics = []\n')
    command = "from bezoar.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "sweep", str(spec), "--store", str(store)],
        stderr=subprocess.PIPE,
        text=True,
        # Where tests run in the background, interrupts are ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not list(store.glob("work/groups/*/group.json")) and process.poll() is None:
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "1 run: 0 already there, 1 new in 1 group, about" in said
    assert "bezoar: interrupted; what is finished is kept" in said
    assert "Traceback" not in said
    assert list((store / "work" / "locks").iterdir()) == []


def test_the_examples_in_the_repository():
    specs = read_sweep(ROOT / "examples" / "sweep.toml")
    plan = make_plan(specs, Store("nowhere"))
    assert (len(specs), plan.new, plan.refused) == (10, 10, [])
    [document] = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(expand(tomllib.loads(document))) == 2 * 3 * (4 + 1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.01, "1 s"), (42.4, "42 s"), (89, "89 s"), (420, "7 min"), (5401, "2 h"), (9e4, "25 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_failures_point_to_an_option_only_where_the_command_has_it(capsys):
    failures = [Failure(RunSpec(seed=seed), "why") for seed in range(_sweep.FAILURES + 2)]
    _sweep.print_failures(failures)
    assert capsys.readouterr().err.endswith("… and 2 failures more\n")
    _sweep.print_failures(failures, _sweep.IN_FULL)
    assert capsys.readouterr().err.endswith("… and 2 failures more; see --json\n")
