"""What a run's key depends on; spellings of the same run are in test_one_name."""

import pytest

from bezoar import BezoarError
from bezoar.experiments import RunSpec, _identity, run_key

CHANGES = {
    "samples": 100,
    "dtype": "float64",
    "partition": "dirichlet:alpha=0.5",
    "network": "fan:agents=12",
    "poisoned": [],
    "attack": "label_flip:fraction=0.5",
    "aggregator": "ios",
    "silent_links": 0.1,
    "silent_agents": 0.1,
    "model": "mlp",
    "start": "random",
    "algorithm": "gossip",
    "rounds": 2,
    "optimizer": "momentum",
    "schedule": "constant",
    "weight_decay": 0.1,
    "batch": 10,
    "order": "consecutive",
    "augment": True,
    "local_steps": 2,
    "accumulate": 2,
    "autocast": "bfloat16",
    "gradient_samples": 5,
    "iterations": 21,
    "every": 5,
    "metrics": ["accuracy"],
    "agent_metrics": True,
    "listening": [1],
    "seed": 1,
    "device": "cuda",
    "keep_models": True,
}


def key(**fields):
    return run_key(RunSpec.read({"network": "fan", "iterations": 20, **fields}))


def test_everything_that_matters_changes_the_key(monkeypatch):
    # The format has one value; of the others the data and the network that they lead to count.
    elsewhere = {"format", "dataset", "placement"}
    assert set(CHANGES) == set(RunSpec.model_fields) - elsewhere
    keys = [key(), *(key(**{name: value}) for name, value in CHANGES.items())]
    for what in ("bezoar", "source", "torch", "numpy"):
        changed = _identity.versions() | {what: "0.0.0"}
        with monkeypatch.context() as patch:
            patch.setattr(_identity, "versions", lambda changed=changed: changed)
            keys.append(key())
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 and int(key, 16) >= 0 for key in keys)
    assert key() == keys[0]


def test_agents_in_another_order_are_the_same_run():
    assert key(poisoned=[5, 2]) == key(poisoned=[2, 5])


def test_of_a_network_file_the_content_counts(tmp_path):
    def key_of_file(name, text):
        path = tmp_path / name
        path.write_text(text)
        return key(network={"name": "from_file", "path": str(path)}, poisoned=[0])

    keys = [
        key_of_file("one.edges", "0 1\n1 2\n"),
        key_of_file("two.edges", "0 1\n1 2\n"),
        key_of_file("one.edges", "0 1\n1 2\n2 0\n"),
        key_of_file("one.csv", "0 1\n1 2\n"),
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    with pytest.raises(BezoarError, match=r"cannot read none.edges: No such file"):
        key(network={"name": "from_file", "path": "none.edges"})
