import json

import pytest
from pydantic import ValidationError

from bezoar import BezoarError, aggregators
from bezoar.experiments import (
    Choice,
    RunSpec,
    network_of,
    partition_of,
    prepare,
    read_spec,
    read_toml,
)


def test_three_ways_to_write_a_choice():
    expected = Choice("partition", "dirichlet", {"alpha": 0.5})
    for written in ("dirichlet:alpha=0.5", {"name": "dirichlet", "alpha": 0.5}, expected):
        assert RunSpec.read({"partition": written}).partition == expected
    assert str(expected) == "dirichlet:alpha=0.5"
    kinds = RunSpec.read({"aggregator": "ios:keep_own=true,estimate=2,mixing=equal"}).aggregator
    assert kinds.options == {"keep_own": True, "estimate": 2, "mixing": "equal"}
    assert RunSpec.read({"partition": Choice("partition", "dirichlet")}).partition.options == {
        "alpha": 1.0  # every option is written out, also of what Python makes
    }


def test_a_spec_survives_json():
    spec = RunSpec.read({"network": "fan:agents=20", "poisoned": [3, 4], "seed": 7})
    document = json.loads(json.dumps(spec.document(), sort_keys=True))
    for read in (RunSpec.read, RunSpec.recall):
        assert read(document) == spec
        assert hash(read(document)) == hash(spec)


def test_an_infinite_option_survives_json():
    spec = RunSpec.read({"aggregator": "clipped_gossip:threshold=inf"})
    document = json.loads(json.dumps(spec.document()))
    for read in (RunSpec.read, RunSpec.recall):
        assert read(document) == spec


def test_a_spec_does_not_change():
    with pytest.raises(ValidationError):
        RunSpec().seed = 3


def test_toml(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'network = "fan"\niterations = 5\n[partition]\nname = "dirichlet"\nalpha = 2.0\n'
    )
    spec = RunSpec.read(read_toml(path))
    assert spec == read_spec(path) == read_spec(str(path))
    assert spec.iterations == 5
    assert spec.partition.options == {"alpha": 2.0}
    path.write_text("network = fan")
    with pytest.raises(BezoarError, match=r"run.toml is not valid TOML: .*line 1"):
        read_toml(path)
    with pytest.raises(BezoarError, match=r"cannot read .*none.toml: No such file"):
        read_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"iteratons": 5}, "no field 'iteratons'; allowed: iterations, "),
        ({"iterations": -1}, "iterations: expected a number of at least 0, found -1$"),
        ({"iterations": "many"}, "iterations: expected an integer, found 'many'$"),
        ({"iterations": "5"}, "iterations: expected an integer, found '5'$"),
        ({"seed": True}, "seed: expected an integer, found True$"),
        ({"seed": 1.5}, "seed: expected an integer, found 1.5$"),
        (
            {"seed": [1, 2]},
            r"seed: expected an integer, found \[1, 2\]; several values are for sweeps$",
        ),
        ({"every": 0}, "every: expected a number of at least 1, found 0$"),
        ({"weight_decay": float("nan")}, "weight_decay: expected a finite number, found nan$"),
        ({"dtype": "float16"}, "dtype: expected 'float32' or 'float64', found 'float16'$"),
        ({"model": "softmx"}, "model: 'softmx' is not known; allowed: softmax, "),
        ({"dataset": "mnst"}, "dataset: 'mnst' is not known; allowed: mnist"),
        ({"network": "fann"}, "network: 'fann' is not known; allowed: fan, "),
        ({"aggregator": "iso"}, "aggregator: 'iso' is not known; allowed: ios, "),
        ({"attack": "label_flp"}, "attack: 'label_flp' is not known; allowed: label_flip, "),
        ({"schedule": "const"}, "schedule: 'const' is not known; allowed: constant, "),
        ({"metrics": ["acuracy"]}, "metrics: 'acuracy' is not known; allowed: accuracy, "),
        ({"metrics": "accuracy"}, "metrics: expected a list, found 'accuracy'$"),
        ({"metrics": [3]}, r"metrics: expected a text as item 1, found \[3\]$"),
        ({"network": "fan:agnts=3"}, "network fan: no option 'agnts'; allowed: agents, "),
        ({"network": "from_file"}, "network from_file: the option 'path' must be given$"),
        (
            {"network": 3},
            r"network: expected a name, a table with a name, or .*\.Network; found 3$",
        ),
        ({"network": ["fan", "line"]}, "network: .*; several values are for sweeps$"),
        ({"network": {"edges": [["a", "b", "c"]]}}, "network .*: expected fewer items in item 1, "),
        ({"network": {"edges": [["a"]]}}, "network .*: expected more items in item 1, "),
        ({"aggregator": "rules.py"}, "aggregator: expected .* as in rules.py:Name$"),
        ({"partition": "dirichlet:alpha"}, "partition: options are .*name=value, found 'alpha'$"),
        ({"partition": {"alpha": 1}}, "partition: expected a table with a name, .*'alpha': 1}$"),
        (
            {"partition": "dirichlet:alpha=-1"},
            "partition dirichlet: alpha: .*more than 0.*found '-1'$",
        ),
        ({"partition": {"name": "dirichlet", "alpha": {}}}, "partition .*: alpha: .*found {}$"),
        ({"partition": {"name": "iid", "x": object}}, "partition iid: x: expected a number, "),
        ({"partition": Choice("network", "fan")}, "partition: expected .*found one for network$"),
        ({"attack": "targeted:source=1,target=1"}, "attack targeted: target: must differ"),
        ({"poisoned": "1.5"}, "poisoned: expected a number of agents such as 2, names .*'1.5'$"),
        ({"poisoned": "a\nb"}, r"poisoned: expected a number of agents .*; found 'a\\nb'$"),
        ({"start": None}, "start: expected a name, a table with a name, or .*Start; found None$"),
        ([], r"fields: expected the fields of a run by name, found \[\]$"),
        ({"poisoned": 1.5}, r"poisoned: expected an integer or a list, found 1\.5$"),
        ({"poisoned": [1, -1]}, r"poisoned: expected .* at least 0 as item 2 .*found \[1, -1\]$"),
        ({"format": 2}, "format: expected 1, found 2$"),
        ({"group": [{}]}, "group: blocks are for sweeps"),
        ({"seed": -1, "every": 0}, "every: .*found 0; seed: .*found -1$"),
    ],
)
def test_refusals_name_the_field(fields, message):
    with pytest.raises(BezoarError, match=f"^{message}"):
        RunSpec.read(fields)


def test_python_refuses_the_same_as_documents():
    with pytest.raises(ValueError, match="aggregator: 'iso' is not known; allowed: ios"):
        RunSpec(aggregator=Choice("aggregator", "iso"))


def test_a_run_can_be_recalled_where_its_rule_is_not_known():
    spec = RunSpec.recall({"aggregator": {"name": "my_rule", "strength": 3}, "metrics": ["mine"]})
    assert str(spec.aggregator) == "my_rule:strength=3"
    with pytest.raises(BezoarError, match=r"seed: .*found -1"):
        RunSpec.recall({"seed": -1})


def test_equal_choices_have_equal_hashes_and_one_text_each():
    first = RunSpec.read(
        {"aggregator": "ios:keep_own=true,estimate=2", "partition": "dirichlet:alpha=2"}
    )
    second = RunSpec.read(
        {
            "aggregator": {"estimate": 2, "name": "ios", "keep_own": True},
            "partition": {"name": "dirichlet", "alpha": 2.0},
        }
    )
    assert first == second
    assert hash(first) == hash(second)
    assert len({first, second, RunSpec.read({"aggregator": "ios:estimate=2"})}) == 2
    assert RunSpec.read({"aggregator": str(first.aggregator)}).aggregator == first.aggregator


def test_an_exact_estimate_may_be_written_as_true():
    for written in ("trimmed_mean:estimate=true", {"name": "ios", "estimate": True}):
        choice = RunSpec.read({"aggregator": written}).aggregator
        assert choice.options["estimate"] == "exact"
        assert aggregators.create(choice.name, estimate=True).estimate == "exact"
        assert choice == RunSpec.read({"aggregator": choice.name}).aggregator
    with pytest.raises(BezoarError, match="estimate: expected 'exact' or 'max' or an integer"):
        RunSpec.read({"aggregator": "ios:estimate=false"})


def test_true_is_not_one():
    first, second = (RunSpec.read({"aggregator": f"ios:estimate={e}"}) for e in ("true", "1"))
    assert first != second


def test_poisoned_agents_have_no_order():
    first, second = (RunSpec.read({"poisoned": agents}) for agents in ([4, 3], [3, 4, 3]))
    assert first == second
    assert first.poisoned == (3, 4)


def test_who_is_poisoned():
    def poisoned(**fields):
        return network_of(RunSpec.read(fields)).poisoned

    assert poisoned(network="two_castle") == (4,)
    assert poisoned(network="two_castle", poisoned=2) == (4, 5)
    assert poisoned(network="two_castle", poisoned=[0]) == (0,)
    assert poisoned(network="fan", poisoned=[]) == ()
    fan = network_of(RunSpec.read({"network": "fan", "poisoned": []}))
    assert fan.edges == network_of(RunSpec.read({"network": "fan"})).edges


def test_the_partition_follows_the_seed():
    first, second, other = (partition_of(RunSpec.read({"seed": seed}), 10) for seed in (0, 0, 1))
    assert first.order.tolist() == second.order.tolist()
    assert first.order.tolist() != other.order.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "metrics = " + "[" * 5000 + "]" * 5000,
        "network = " + "{a = " * 5000 + "1" + "}" * 5000,
        "[" + ".".join(["network"] * 5000) + "]",
        ".".join(["network"] * 30) + " = 1",
    ],
)
def test_a_file_that_is_nested_deeply_is_refused(tmp_path, text):
    path = tmp_path / "deep.toml"
    path.write_text(text)
    with pytest.raises(BezoarError, match=r"deep.toml: expected .* at most 20 deep"):
        read_toml(path)


@pytest.mark.parametrize("device", ["meta", "cpu:99", "nonsense", "cuda:77"])
def test_a_device_that_cannot_compute_here_is_refused(device):
    with pytest.raises(BezoarError, match=rf"device: '{device}' cannot be used here .* allowed"):
        prepare(RunSpec(device=device))
