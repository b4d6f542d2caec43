"""A run has one name, however it is spelled; what changes its numbers changes its name."""

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezoar import BezoarError, _parts, aggregators, data, networks
from bezoar.experiments import RunSpec, _identity, expand, run_key
from bezoar.networks import Network

#: Choices of each kind in several spellings; those in a list are one run.
SPELLINGS = {
    "network": [
        ["fan", "fan:agents=10", "fan:poisoned=1", {"name": "fan", "agents": 10, "poisoned": 1}],
        ["line:agents=8", {"name": "line", "agents": 8}, "line:agents=8,poisoned=1"],
        ["erdos_renyi", "erdos_renyi:probability=0.5", {"name": "erdos_renyi", "seed": 0}],
    ],
    "aggregator": [
        ["ios", "ios:mixing=metropolis", "ios:keep_own=no", "ios:estimate=true", aggregators.IOS()],
        ["ios:keep_own=yes", {"name": "ios", "keep_own": True}, aggregators.IOS(keep_own=True)],
        ["clipped_gossip:threshold=1", {"name": "clipped_gossip", "threshold": 1.0}],
        ["krum:estimate=2", {"name": "krum", "estimate": np.int64(2)}],
        ["nnm+krum", {"name": "krum", "before": "nnm"}, {"name": "krum", "before": ["nnm"]}],
    ],
    "model": [["softmax", {"name": "softmax"}], ["mlp", "mlp:width=200", {"name": "mlp"}]],
    "algorithm": [["adapt_then_combine"], ["gossip", "gossip:awake=1", {"name": "gossip"}]],
    "listening": [[()], [[1, 2], (2, 1), {1, 2}, np.array([2, 1, 1])]],
    "attack": [
        ["label_flip", "label_flip:fraction=1", {"name": "label_flip", "fraction": 1.0}],
        ["targeted", {"name": "targeted", "source": 0}, "targeted:target=1,source=0"],
    ],
    "partition": [
        ["iid", {"name": "iid"}],
        ["dirichlet", "dirichlet:alpha=1", "dirichlet:alpha=1.0"],
    ],
    "schedule": [["inverse_sqrt", "inverse_sqrt:scale=0.1"], ["constant:scale=1"]],
    "optimizer": [["plain"], ["momentum", "momentum:beta=0.9", {"name": "momentum"}]],
    "metrics": [[None], [["accuracy", "test_loss"], ("test_loss", "accuracy", "accuracy")]],
    "weight_decay": [[0, 0.0], [1, 1.0, np.float64(1)]],
    "seed": [[0, np.int64(0)], [3]],
}


@st.composite
def spelled_twice(draw):
    """Which run, and two spellings of it."""
    which, first, second = {}, {}, {}
    for field, runs in SPELLINGS.items():
        place = draw(st.integers(0, len(runs) - 1))
        which[field] = place
        for fields in (first, second):
            fields[field] = draw(st.sampled_from(runs[place]))
    return which, first, second


@settings(max_examples=150, deadline=None)
@given(spelled_twice(), spelled_twice())
def test_a_run_has_one_name_and_different_runs_have_different_ones(one, other):
    which, first, second = one
    key = run_key(RunSpec.read(first))
    assert run_key(RunSpec.read(second)) == key
    assert run_key(RunSpec.recall(RunSpec.read(first).document())) == key
    if other[0] != which:
        assert run_key(RunSpec.read(other[1])) != key


@pytest.mark.parametrize(
    ("network", "poisoned"), [("fan", [9]), ("line", [4]), ("two_castle", [4]), ("ring", [9])]
)
def test_who_is_poisoned_is_one_run_however_it_is_said(network, poisoned):
    spellings = [{}, {"poisoned": 1}, {"poisoned": poisoned}, {"poisoned": tuple(poisoned)}]
    keys = {run_key(RunSpec.read({"network": network, **fields})) for fields in spellings}
    assert len(keys) == 1
    for other in ([], [poisoned[0] - 1], 2):
        assert run_key(RunSpec.read({"network": network, "poisoned": other})) not in keys


def test_of_a_placement_the_agents_count():
    keys = {
        placement: run_key(RunSpec.read({"network": "ring", "poisoned": 1, "placement": placement}))
        for placement in (None, "last", "degree", "worst")
    }
    assert keys[None] == keys["last"] != keys["degree"]
    assert run_key(RunSpec.read({"network": "ring", "poisoned": [0]})) == keys["degree"]


def test_defaults_are_written_out_and_read_again():
    spec = RunSpec.read({"aggregator": "ios"})
    document = spec.document()
    options = {"name": "ios", "mixing": "metropolis", "estimate": "exact", "keep_own": False}
    assert options.items() <= document["aggregator"].items()
    assert RunSpec.read(document) == RunSpec.recall(document) == spec
    assert str(spec.aggregator) == "ios"


RULE = '''
from dataclasses import dataclass
from bezoar.aggregators import WeightedAggregator

@dataclass(frozen=True)
class Own(WeightedAggregator):
    """Listens to nobody."""
    share: float = 0.5
    def weights(self, neighbourhood):
        own = neighbourhood.mixing * 0
        own[..., 0] = 1
        return own
'''


def write_files(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rule.py").write_text(RULE)
    (folder / "net.edges").write_text("0 1\n1 2\n2 0\n")
    rng = np.random.default_rng(0)
    np.savez(
        folder / "data.npz",
        x_train=rng.normal(size=(30, 4)),
        y_train=np.arange(30) % 3,
        x_test=rng.normal(size=(6, 4)),
        y_test=np.arange(6) % 3,
    )


FILES = {"aggregator": "rule.py:Own", "network": "net.edges", "dataset": "data.npz"}


def key_in(folder, **fields):
    return run_key(RunSpec.read({**FILES, "poisoned": [0], **fields}, folder))


def test_moving_the_files_keeps_the_name_and_changing_a_byte_does_not(tmp_path):
    write_files(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there" / "else")
    key = key_in(tmp_path / "here")
    assert key_in(tmp_path / "there" / "else") == key
    for name, change in (
        ("rule.py", lambda path: path.write_text(RULE.replace("= 1", "= 1.0"))),
        ("net.edges", lambda path: path.write_text("0 1\n1 2\n2 0 # linked\n")),
        ("data.npz", lambda path: np.savez(path, **{**np.load(path), "y_test": np.arange(6) % 2})),
    ):
        write_files(tmp_path / "changed")
        assert key_in(tmp_path / "changed") == key
        change(tmp_path / "changed" / name)
        assert key_in(tmp_path / "changed") != key, name


def test_what_is_done_before_an_own_rule_is_part_of_the_name(tmp_path):
    (tmp_path / "rule.py").write_text(RULE)
    rules = ["rule.py:Own", "nnm+rule.py:Own", "bucketing+rule.py:Own"]
    rules += ["nnm+bucketing+rule.py:Own", "bucketing+nnm+rule.py:Own"]
    keys = {run_key(RunSpec.read({"aggregator": rule}, tmp_path)) for rule in rules}
    assert len(keys) == len(rules)


def test_parts_of_the_same_name_in_modules_of_a_package_are_different_runs(tmp_path, monkeypatch):
    package = tmp_path / "two_rules"
    package.mkdir()
    for module, source in (("__init__", ""), ("one", RULE), ("other", RULE.replace("= 1", "= 2"))):
        (package / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    one, other = (RunSpec.read({"aggregator": f"two_rules.{m}:Own"}) for m in ("one", "other"))
    assert run_key(one) != run_key(other)


def test_a_registered_dataset_is_known_by_its_arrays():
    def own() -> data.Dataset:
        arrays = np.random.default_rng(own.seed).normal(size=(20, 3))
        labels = np.arange(20) % 2
        return data.Dataset("own", arrays, labels, arrays, labels, 2)

    keys = []
    for seed in (0, 1):
        own.seed = seed
        _parts.register(lambda: own(), "dataset", "own_for_test")
        try:
            keys.append(run_key(RunSpec.read({"dataset": "own_for_test", "network": "ring"})))
        finally:
            del data.DATASETS["own_for_test"]
    assert keys[0] != keys[1]


def test_the_source_that_computes_is_part_of_the_name(tmp_path, monkeypatch):
    package = tmp_path / "bezoar"
    for file in ("aggregators/_mean.py", "cli/_main.py", "report/_html.py", "_seeds.py"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text("one")
    monkeypatch.setattr(_identity.bezoar, "__file__", str(package / "__init__.py"))
    before = _identity._source()
    for file in ("cli/_main.py", "report/_html.py"):
        (package / file).write_text("other")
        assert _identity._source() == before
    for file in ("aggregators/_mean.py", "_seeds.py"):
        (package / file).write_text("other")
        assert _identity._source() != before
        (package / file).write_text("one")
        assert _identity._source() == before


def test_objects_without_a_name_cannot_be_stored():
    network = networks.ring(6, {0})
    spec = RunSpec.read({"network": Network(network.graph, {0}, name="mine")})
    with pytest.raises(BezoarError, match="network: the object 'mine' has no name, so this run"):
        run_key(spec)
    assert run_key(RunSpec.read({"aggregator": aggregators.IOS(mixing="equal")})) == run_key(
        RunSpec.read({"aggregator": "ios:mixing=equal"})
    )


def test_a_sweep_of_spellings_has_one_run():
    specs = expand({"aggregator": ["ios", "ios:mixing=metropolis"], "poisoned": [[9]]})
    assert len(specs) == 1
