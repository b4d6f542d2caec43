"""A user's own parts, each in a file outside the package, used together from the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bezoar
from bezoar import BezoarError, Network, _parts, aggregators, networks, run
from bezoar.aggregators import WeightedAggregator
from bezoar.cli._main import app
from bezoar.experiments import RunSpec, Store, prepare, spec_of

BEZOAR = Path(sys.executable).with_name("bezoar")

RULE = '''
from dataclasses import dataclass
from bezoar.aggregators import WeightedAggregator

@dataclass(frozen=True)
class Stubborn(WeightedAggregator):
    """Keeps a share of the own model and takes the rest from the weighted mean."""
    share: float = 0.5

    def weights(self, neighbourhood):
        weights = (1 - self.share) * neighbourhood.mixing
        weights[..., 0] += self.share
        return weights
'''

ATTACK = '''
from dataclasses import dataclass
import numpy as np
from bezoar.attacks import LabelAttack

@dataclass(frozen=True)
class NextClass(LabelAttack):
    """Every label becomes the next one."""
    def corrupt(self, labels, classes, rng):
        return (labels + 1) % classes
'''

SCHEDULE = '''
from dataclasses import dataclass
from bezoar.training import Schedule

@dataclass(frozen=True)
class Halving(Schedule):
    """A step size that is halved now and then."""
    scale: float = 0.2
    every: int = 100

    def __call__(self, iteration, iterations):
        return self.scale / 2 ** (iteration // self.every)
'''

NETWORK = '''
import networkx as nx
from bezoar import Network

def wheel(spokes: int = 6, poisoned: int = 1) -> Network:
    """A hub linked to all agents of a ring; the last ones are poisoned."""
    return Network(nx.wheel_graph(spokes + 1), range(spokes + 1 - poisoned, spokes + 1))
'''

DATASET = '''
import numpy as np
from bezoar.data import Dataset

def blobs(samples: int = 140) -> Dataset:
    """Clouds of points around three corners."""
    rng = np.random.default_rng(0)
    labels = np.arange(samples) % 3
    points = np.eye(3)[labels] + 0.3 * rng.normal(size=(samples, 3))
    return Dataset("blobs", points, labels, points, labels, 3)
'''

SWEEP = """
network = {{ name = "parts/network.py:wheel", spokes = [5, 6] }}
dataset = ["parts/dataset.py:blobs", "parts/points.npz"]
attack = "parts/attack.py:NextClass"
schedule = "parts/schedule.py:Halving"
aggregator = ["parts/rule.py:Stubborn", "parts/rule.py:Stubborn:share=0.9", "weighted_mean"]
iterations = {iterations}
every = {iterations}
"""


OFTEN_CHECKPOINTED = """
import sys
from bezoar.experiments import sweep
sweep(*sys.argv[1:], checkpoint_seconds=0.02)
"""


def write_parts(folder, iterations=40):
    parts = folder / "parts"
    parts.mkdir(parents=True)
    sources = {
        "rule": RULE,
        "attack": ATTACK,
        "schedule": SCHEDULE,
        "network": NETWORK,
        "dataset": DATASET,
    }
    for name, source in sources.items():
        assert len(source.splitlines()) <= 30
        (parts / f"{name}.py").write_text(source)
    rng = np.random.default_rng(1)
    np.savez(
        parts / "points.npz",
        x_train=rng.normal(size=(60, 4)),
        y_train=np.arange(60) % 2,
        x_test=rng.normal(size=(20, 4)),
        y_test=np.arange(20) % 2,
    )
    document = folder / "sweep.toml"
    document.write_text(SWEEP.format(iterations=iterations))
    return document


def sweep_command(document, store):
    return ["sweep", str(document), "--store", str(store), "--json"]


def sweep_here(document, store):
    """The command in this process."""
    result = CliRunner().invoke(app, sweep_command(document, store))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def measured(store):
    """What was measured, by what tells runs apart."""
    return {run.key: (run.metrics["accuracy"].tolist(), run.files) for run in Store(store).runs()}


def test_used_together_killed_and_resumed(tmp_path):
    document = write_parts(tmp_path / "here", iterations=600)
    command = [sys.executable, "-c", OFTEN_CHECKPOINTED, document.name, tmp_path / "killed"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=document.parent)
    groups = tmp_path / "killed" / "work" / "groups"
    deadline = time.monotonic() + 120
    while not any(groups.glob("*/checkpoint.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL  # it had not ended by itself
    process.stderr.close()
    assert any(groups.glob("*/checkpoint.safetensors"))
    # From another folder: paths in a document are relative to it.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [BEZOAR, *sweep_command(document, tmp_path / "killed")]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=elsewhere)
    assert finished.returncode == 0, finished.stderr
    assert len(json.loads(finished.stdout)["runs"]) == 12
    assert len(sweep_here(document, tmp_path / "undisturbed")["runs"]) == 12
    assert measured(tmp_path / "killed") == measured(tmp_path / "undisturbed")
    assert sweep_here(document, tmp_path / "killed")["new"] == 0
    run = next(Store(tmp_path / "killed").runs())
    assert spec_of(run).attack.name.endswith("parts/attack.py:NextClass")
    assert run.network.agents in (6, 7)


@pytest.fixture
def rule_file(tmp_path):
    path = tmp_path / "rule.py"
    path.write_text(RULE)
    return path


def test_a_changed_file_is_another_rule(rule_file):
    spec = {"aggregator": f"{rule_file}:Stubborn", "network": "ring", "iterations": 1}
    before = prepare(RunSpec.read(spec))
    assert before.run.aggregator.share == 0.5
    rule_file.write_text(RULE.replace("share: float = 0.5", "share: float = 0.25"))
    after = prepare(RunSpec.read(spec))
    assert after.run.aggregator.share == 0.25
    assert before.key != after.key


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        (RULE, "Nothing", "aggregator: .*rule.py has no 'Nothing'"),
        ("1/0", "Rule", "rule.py cannot be run: ZeroDivisionError"),
        ("def (", "Rule", "rule.py cannot be run: SyntaxError"),
        ("Rule = 3", "Rule", "is no class or function, found 3"),
        ("def rule(): return 3", "rule", r"expected a bezoar.aggregators.Aggregator, found int"),
    ],
)
def test_what_is_not_a_part_is_refused(rule_file, source, name, message):
    rule_file.write_text(source)
    with pytest.raises(BezoarError, match=message):
        prepare(RunSpec.read({"aggregator": f"{rule_file}:{name}"}))


def test_options_of_own_parts_are_typed(rule_file):
    spec = RunSpec.read({"aggregator": f"{rule_file}:Stubborn:share=0.75"})
    assert spec.aggregator.options["share"] == 0.75
    with pytest.raises(BezoarError, match="share: expected a number, found 'much'"):
        RunSpec.read({"aggregator": f"{rule_file}:Stubborn:share=much"})


def test_a_module_is_named_by_its_package(tmp_path, monkeypatch):
    package = tmp_path / "my_rules"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "stubborn.py").write_text(RULE)
    monkeypatch.syspath_prepend(tmp_path)
    spec = RunSpec.read({"aggregator": "my_rules.stubborn:Stubborn", "network": "ring"})
    made = prepare(spec).run.aggregator
    assert type(made).__name__ == "Stubborn"
    assert RunSpec.read({"aggregator": made, "network": "ring"}) == spec


def test_installed_packages_declare_entry_points(tmp_path, monkeypatch):
    (tmp_path / "their_rules.py").write_text(RULE)
    about = tmp_path / "their_rules-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rules\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[bezoar.aggregator]\ntheirs = their_rules:Stubborn\n")
    monkeypatch.syspath_prepend(tmp_path)
    _parts._entry_points.cache_clear()
    try:
        spec = RunSpec.read({"aggregator": "theirs:share=0.9", "network": "ring"})
        made = prepare(spec).run.aggregator
        assert (type(made).__module__, made.share) == ("their_rules", 0.9)
        assert _parts.source_of("aggregator", "theirs") is not None
    finally:
        aggregators.AGGREGATORS.pop("theirs", None)
        _parts._entry_points.cache_clear()


def test_registered_parts_have_names():
    class Silent(WeightedAggregator):
        """Listens to nobody."""

        name = "silent_for_test"

        def weights(self, neighbourhood):
            weights = neighbourhood.mixing * 0
            weights[..., 0] = 1
            return weights

    bezoar.register(Silent)
    try:
        fields = {"network": "ring", "iterations": 1, "metrics": ["accuracy"]}
        found = run(aggregator="silent_for_test", **fields)
        same = run(aggregator="local", **fields)
        np.testing.assert_array_equal(found["accuracy"], same["accuracy"])
    finally:
        del aggregators.AGGREGATORS["silent_for_test"]
    with pytest.raises(BezoarError, match="kind: must be given"):
        bezoar.register(lambda: None)


def test_objects_are_taken_as_they_are():
    fields = {"iterations": 1, "metrics": ["accuracy"]}
    network = Network(networks.ring(6).graph, {2}, name="mine")
    found = run(network=network, aggregator=aggregators.IOS(mixing="equal"), **fields)
    same = run(network="ring:agents=6", poisoned=[2], aggregator="ios:mixing=equal", **fields)
    np.testing.assert_array_equal(found["accuracy"], same["accuracy"])
    with pytest.raises(
        BezoarError, match=r"network: expected a name, .* or a bezoar.networks.Network; found 3"
    ):
        run(network=3, **fields)


def test_fields_beside_a_spec_replace_its_own():
    spec = RunSpec.read({"network": "line", "iterations": 1, "metrics": ["accuracy"]})
    found, same = run(spec, network="fan"), run(network="fan", iterations=1, metrics=["accuracy"])
    np.testing.assert_array_equal(found["accuracy"], same["accuracy"])
