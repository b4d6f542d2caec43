"""Options of training, and the ways to train on several processes, as they are typed."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bezoar import run
from bezoar.cli._main import app
from bezoar.experiments import Store

COMMON = {
    "network": "ring:agents=6,poisoned=1",
    "partition": "iid",
    "samples": 600,
    "iterations": 2,
    "every": 1,
    "metrics": ["accuracy_mean", "consensus_error"],
}

FIELDS = {
    "aggregator": "nearest",
    "attack": "dynamic_label_flip",
    "model": "mlp:width=8,depth=1",
    "start": "random",
    "batch": 4,
    "optimizer": "heavy_ball:beta=0.5",
    "schedule": "constant:scale=0.05",
    "weight_decay": 0.01,
    "local_steps": 2,
    "seed": 3,
}


def inside(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def options(fields):
    """The fields as options of the command; what is a list is named several times."""
    for name, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            yield f"--{name.replace('_', '-')}"
            yield str(each)


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "run.toml"
    fields = {**COMMON, "network": "random_regular:agents=12,degree=3,poisoned=1"}
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items()))
    return path


def test_every_option_of_training_reaches_the_training():
    shown = {name: value for name, value in COMMON.items() if name != "metrics"}
    [typed] = json.loads(inside("run", *options(shown | FIELDS), "--json"))["runs"]
    called = run(**{**COMMON, **FIELDS})
    for metric in COMMON["metrics"]:
        assert typed["metrics"][metric] == called[metric].tolist()


def test_a_sweep_on_processes_ends_in_the_same_store(document, tmp_path):
    for folder, more in (("here", ()), ("there", ("--on", "local:1"))):
        inside("sweep", document, "--store", tmp_path / folder, *more)
    [here], [there] = (Store(tmp_path / folder).runs() for folder in ("here", "there"))
    assert (here.key, here.files) == (there.key, there.files)


def test_a_plan_for_several_machines(document):
    plans = [
        json.loads(inside("plan", document, "--machines", count, "--workers", 1, "--json"))
        for count in (1, 3)
    ]
    assert [plan["members"] for plan in plans] == [12, 4]
    assert [plan["halo"] > 0 for plan in plans] == [False, True]
    assert all(plan["seconds"] > 0 for plan in plans)
    assert "neighbours elsewhere" in inside("plan", document, "--workers", 1)


def test_two_ranks_run_what_one_process_runs(document, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    command += ["2", "-m", "bezoar", "run", str(document), "--workers", "1", "--json"]
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=quiet)
    [together] = json.loads(told.stdout)["runs"]  # the second rank prints nothing
    [alone] = json.loads(inside("run", document, "--workers", 1, "--json"))["runs"]
    assert together["metrics"]["accuracy_mean"] == alone["metrics"]["accuracy_mean"]
    assert together["spec"] == alone["spec"]
