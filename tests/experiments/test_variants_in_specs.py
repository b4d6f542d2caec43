"""Variants of training in specs: one name however they are spelled, and what is refused."""

import pytest

from bezoar import BezoarError, run
from bezoar.experiments import RunSpec, expand, network_of, prepare, run_key
from bezoar.experiments._plan import together

SHORT = {"partition": "by_class", "samples": 100, "iterations": 2, "every": 2}


def read(**fields):
    return RunSpec.read({**SHORT, **fields})


def test_networks_in_turn_are_one_run_however_they_are_spelled(tmp_path):
    spellings = [
        "over_time:networks=fan line:agents=10",
        {"over_time": ["fan", "line"]},
        {"name": "over_time", "networks": [{"name": "fan", "poisoned": 1}, {"name": "line"}]},
    ]
    specs = [read(network=network) for network in spellings]
    assert len({run_key(spec) for spec in specs}) == 1
    assert specs[0] == specs[1] == specs[2]
    assert str(specs[2].network) == "over_time:networks=fan line"
    assert read(network=str(specs[0].network)) == specs[0]
    assert RunSpec.recall(specs[0].document(), specs[0].texts()) == specs[0]
    assert run_key(read(network={"over_time": ["line", "fan"]})) != run_key(specs[0])
    assert network_of(read(network=spellings[1], poisoned=[2, 3])).at(2).poisoned == (2, 3)


def test_files_of_networks_in_turn(tmp_path):
    """They are read anew when they change, and where they lie does not matter."""
    keys = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        for day, links in (("monday", "0 1\n1 2\n"), ("tuesday", "0 2\n2 1\n")):
            (tmp_path / folder / f"{day}.edges").write_text(links)
        network = {"over_time": ["monday.edges", "tuesday.edges"]}
        fields = {**SHORT, "network": network, "poisoned": 1}
        spec = RunSpec.read(fields, tmp_path / folder)
        keys.append(run_key(spec))
    assert keys[0] == keys[1]
    (tmp_path / "other" / "tuesday.edges").write_text("0 2\n2 1\n0 1\n")
    assert run_key(spec) != keys[1]


def test_networks_in_turn_may_be_written_out():
    days = [[["a", "b"], ["b", "c"]], [["a", "b"], ["a", "c"]]]
    network = {"over_time": [{"edges": edges} for edges in days]}
    [spec] = expand({**SHORT, "network": network, "poisoned": [["c"]]})
    assert spec == RunSpec.read(spec.document()) == RunSpec.recall(spec.document())
    assert [network_of(spec).at(k).edges for k in (1, 2)] == [((0, 1), (1, 2)), ((0, 1), (0, 2))]


def test_networks_in_turn_are_swept_like_any_other():
    document = {
        **SHORT,
        "network": [{"over_time": ["fan", "line"]}, "ring", {"over_time": [["fan"], ["line"]]}],
        "algorithm": ["gossip:awake=2", {"name": "gossip", "awake": [1, 3]}],
        "schedule": [{"name": "milestones", "milestones": [5, 9]}, "inverse"],
    }
    specs = expand(document)
    assert len(specs) == 4 * 3 * 2
    assert len(set(map(run_key, specs))) == len(specs)


def test_what_a_group_shares_and_what_is_a_runs_own():
    """Silence is part of the network; how an iteration goes is the same for all of a group."""
    specs = [
        read(),
        read(silent_links=0.1),
        read(silent_agents=0.1),
        read(rounds=2),
        read(algorithm="combine_then_adapt"),
        read(algorithm="gossip"),
    ]
    assert len(set(map(run_key, specs))) == len(specs)
    groups = together([prepare(spec) for spec in specs])
    assert groups == [[0, 1, 2], [3], [4], [5]]


def test_the_seed_decides_who_is_silent():
    heard = [prepare(read(silent_links=0.5, seed=seed)).run.network.at(1) for seed in (0, 0, 1)]
    assert heard[0] == heard[1] != heard[2]
    assert prepare(read(silent_links=0.5)).network == prepare(read()).network


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"algorithm": "gosip"}, "algorithm: 'gosip' is not known; allowed: gossip"),
        ({"algorithm": "gossip:awake=0"}, "awake: expected a number of at least 1, found '0'"),
        ({"algorithm": "gossip", "rounds": 2}, "rounds: .* found 2 rounds"),
        ({"algorithm": "gossip", "silent_links": 0.1}, "network: in gossip everyone keeps"),
        ({"algorithm": "gradient_tracking", "local_steps": 3}, "found 3 local steps; allowed: 1"),
        ({"silent_links": 1.5}, "silent_links: expected a number of at most 1"),
        ({"rounds": 0}, "rounds: expected a number of at least 1"),
        ({"network": {"over_time": []}}, "networks: expected "),
        ({"network": {"over_time": [{"over_time": ["fan"]}]}}, "expected a Network in iteration 1"),
        ({"network": {"over_time": ["fan", "fen"]}}, "network: 'fen' is not known"),
        ({"network": "over_time:networks=fan ring:agents=12"}, "expected 10 agents"),
        ({"network": "over_time:networks=fan ring:agents=5"}, "expected 10 agents in each, .* 5"),
        ({"schedule": {"name": "milestones", "milestones": [3, 2]}}, "expected ascending"),
    ],
)
def test_what_cannot_be_is_refused(fields, told):
    with pytest.raises(BezoarError, match=told):
        prepare(read(**fields))


def test_variants_train_from_a_spec():
    variants = [
        {"network": {"over_time": ["fan", "line"]}, "rounds": 2, "silent_links": 0.2},
        {"algorithm": "gradient_tracking", "optimizer": "momentum", "attack": "sign_flip"},
        {"algorithm": "gossip:awake=3", "schedule": "milestones:milestones=1"},
        {"algorithm": "combine_then_adapt", "model": "mlp", "local_steps": 2, "batch": 4},
        {"algorithm": "gossip:awake=3", "model": "mlp", "batch": 4, "optimizer": "nesterov"},
    ]
    for fields in variants:
        history = run(**{**SHORT, **fields}, aggregator="ios", metrics=("consensus_error",))
        assert not history.diverged
        assert history["consensus_error"][-1] > 0
