"""The commands: keys, agents with data of their own, status, results, a report of them."""

import json
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from safetensors.torch import save
from several import Several, settings_of, train
from typer.testing import CliRunner

from bezoar import BezoarError
from bezoar.agents import (
    Neighbours,
    Peer,
    Setting,
    make_key,
    read_key,
    read_peers,
    read_result,
    read_status,
    run_agent,
    run_local,
    together,
    write_key,
    write_peer,
)
from bezoar.agents._ports import free_ports
from bezoar.agents._records import MEASURED, METRICS, Records
from bezoar.cli._main import app
from bezoar.experiments import RunSpec, Store, agreement, network_of, read_toml, run_all
from bezoar.training import OF_AGENTS, Checkpoint, State

SPEC = """
network = {name = "ring", agents = 3, poisoned = 0}
aggregator = "mean"
iterations = 4
every = 2
"""


def call(*arguments):
    result = CliRunner().invoke(app, ["agents", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def own_data(path, seed):
    """A small dataset of an agent's own: two classes that can be told apart."""
    rng = np.random.default_rng(seed)
    labels = np.arange(40) % 2
    samples = rng.standard_normal((40, 5)) + 3 * labels[:, None]
    np.savez(path, x_train=samples, y_train=labels, x_test=samples, y_test=labels)
    return path


@pytest.fixture
def spec_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(SPEC)
    return path


def test_from_keys_to_a_report(tmp_path, spec_file):
    """Three agents with data of their own; an observer asks for status and results."""
    ports = free_ports(3)
    for name, port in zip("012", ports, strict=True):
        call("key", "--name", name, "--address", f"127.0.0.1:{port}", "--out", tmp_path / name)
        peers = tmp_path / "peers"
        peers.mkdir(exist_ok=True)
        (tmp_path / name / f"{name}.toml").rename(peers / f"{name}.toml")
    call("key", "--name", "ward", "--out", tmp_path / "ward")
    observers = tmp_path / "observers"
    observers.mkdir()
    (tmp_path / "ward" / "ward.toml").rename(observers / "ward.toml")
    asking = ("--peers", peers, "--key", tmp_path / "ward" / "ward.key")
    several = Several({})
    for name, port in zip("01", ports, strict=False):
        setting = Setting(
            spec=RunSpec.read(tomllib.loads(SPEC)),
            name=name,
            key=read_key(tmp_path / name / f"{name}.key"),
            peers=read_peers(peers),
            listen=f"127.0.0.1:{port}",
            folder=tmp_path / "agents" / name,
            patience=30.0,
            wait=120.0,
            data=own_data(tmp_path / f"{name}.npz", int(name)),
            workers=1,
        )
        several.start(setting)
    told = call(
        *("start", spec_file, "--name", "2", "--peers", peers),
        *("--listen", f"127.0.0.1:{ports[2]}", "--key", tmp_path / "2" / "2.key"),
        *("--data", own_data(tmp_path / "ward:no=2.npz", 2), "--folder", tmp_path / "agents" / "2"),
        *("--observers", observers, "--workers", 1),
    )
    several.join()
    assert "2: 4 rounds, accuracy" in told.output
    with pytest.raises(BezoarError, match="no status found"):
        call("status", *asking)  # they have ended
    found = json.loads(call("status", tmp_path / "agents", "--json").output)["agents"]
    assert {each["name"] for each in found} == set("012")
    assert all(each["round"] == 4 and each["own_data"] for each in found)
    lines = (tmp_path / "agents" / "0" / "metrics.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["iteration", "2", "4"]
    told = call("collect", spec_file, tmp_path / "agents", "--store", tmp_path / "store").output
    assert "some with data of their own" in told
    spec_file.write_text(SPEC.replace("mean", "median"))
    with pytest.raises(BezoarError, match="of another spec than this one"):
        call("collect", spec_file, tmp_path / "agents")
    [run] = Store(tmp_path / "store").runs()
    assert run.iterations.tolist() == [0, 2, 4]
    assert run["accuracy_mean"][-1] > run["accuracy_mean"][0] + 0.1


def test_processes_on_this_machine_have_the_bits_of_the_simulator(tmp_path, monkeypatch):
    data = own_data(tmp_path / "own.npz", seed=0)
    spec_file = tmp_path / "run.toml"
    spec_file.write_text(SPEC + f'dataset = "{data.name}"\nkeep_models = true\n')
    folder, store = tmp_path / "agents", tmp_path / "store"
    result = call("local", spec_file, "--folder", folder, "--store", store, "--json")
    told = json.loads(result.stdout)
    assert [each["misses"] for each in told["statuses"].values()] == [0, 0, 0]
    monkeypatch.setattr("bezoar.exchange._exchange.is_dense", lambda *_: False)
    [simulated] = run_all([RunSpec.read(read_toml(spec_file), tmp_path)], workers=1)
    kept = Store(store).load(told["key"])
    assert torch.equal(kept.models, simulated.models)
    for metric in ("accuracy_mean", "accuracy_worst"):
        np.testing.assert_allclose(kept[metric], simulated[metric], rtol=1e-12)


def test_status_over_the_network(tmp_path, tiny_mnist):
    spec = RunSpec.read(tomllib.loads(SPEC) | {"iterations": 2})
    ward = make_key("ward")
    key, _ = write_key(ward, tmp_path)
    observers = (Peer("ward", ward.certificate),)
    settings = settings_of(spec, tmp_path, observers=observers, wait=30.0)
    last = settings.pop("2")
    for peer in last.peers.values():
        write_peer(peer, tmp_path / "peers")
    several = Several(settings)
    several.until(lambda: (tmp_path / "0" / "status.json").exists())
    several.until(lambda: (tmp_path / "1" / "status.json").exists())
    asked = ("--peers", tmp_path / "peers", "--key", key, "--json")
    result = call("status", *asked)
    # Agents 0 and 1 wait for 2 in the first round; 2 does not answer, and is told of.
    assert "2: 127.0.0.1" in result.stderr
    found = json.loads(result.stdout)["agents"]
    assert [(each["name"], each["round"], each["state"]) for each in found] == [
        ("0", 0, "training"),
        ("1", 0, "training"),
    ]
    several.start(last)
    several.join()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"name": 3}', b"\xff" * 9, bytes(500)])
def test_results_and_status_may_come_from_anybody(content):
    with pytest.raises(BezoarError, match="b: expected those of an agent"):
        read_result(content, "b")
    with pytest.raises(BezoarError, match="b: expected that of an agent"):
        read_status(content, "b")


def told_by(spec, name, iterations=(0, 1, 2), model=(0.0, 0.0), **more):
    """A result as an agent tells it, or somebody who would harm whoever reads it."""
    status = {"name": name, "spec": "", "state": "finished", "round": 2, "rounds": 2}
    status |= {"accuracy": 0.5, "test_loss": 0.5, "seconds": 1.0, "resumed_after": 0}
    status |= dict.fromkeys(("bytes_sent", "bytes_received", "misses", "jumps"), 0)
    status |= {"own_data": False, "peers": {}, "events": [], **more}
    measured = torch.full((len(iterations),), 0.5, dtype=torch.float64)
    tensors = {"iterations": torch.tensor(iterations), "models": torch.tensor([model])}
    tensors |= {"accuracy": measured, "test_loss": measured.clone()}
    agreed = agreement(spec, network_of(spec)).hex()
    metadata = {"format": "1", "name": name, "versions": "{}", "agreement": agreed}
    return save(tensors, metadata | {"status": json.dumps(status)})


def test_one_agents_result_does_not_stand_for_that_of_another():
    spec = RunSpec.read({"network": "ring:agents=3", "iterations": 2})
    with pytest.raises(BezoarError, match="b: expected that of b, found 0's"):
        read_result(told_by(spec, "0"), "b", "b")
    results = [read_result(told_by(spec, name), name, name) for name in "0120"]
    with pytest.raises(BezoarError, match="there are 2 of '0'"):
        together(spec, results)
    _, history = together(spec, results[:3])
    assert history.models.shape == (3, 2)


def test_agents_whose_models_differ_in_length_are_brought_together_without_them():
    spec = RunSpec.read({"network": "ring:agents=3", "iterations": 2})
    contents = [told_by(spec, "0"), told_by(spec, "1", model=(0.0, 0.0, 0.0)), told_by(spec, "2")]
    _, history = together(spec, [read_result(content, "somebody") for content in contents])
    assert history["accuracy_mean"].tolist() == [0.5] * 3
    assert len(history.models) == 0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"model": ((0.0, 0.0),)}, "a model that is no vector of numbers"),
        ({"model": (1, 2)}, "a model that is no vector of numbers"),
        ({"iterations": ((0, 1), (1, 2))}, "measurements of different lengths"),
        ({"iterations": (0, 10**12)}, "1 measured after iterations that the run does not have"),
        (
            {"peers": {"\x1b[2J": {"address": "", "heard": 0, "last": 0, "misses": {}}}},
            "peers. .2J",
        ),
    ],
)
def test_results_that_would_harm_whoever_reads_them_are_refused(wrong, told):
    spec = RunSpec.read({"network": "ring:agents=3", "iterations": 2})
    with pytest.raises(BezoarError, match=told) as found:
        together(spec, [read_result(told_by(spec, "1", **wrong), "b")])
    assert str(found.value).isprintable()


@pytest.fixture
def recorded(tmp_path):
    """What begins an agent's records, makes a checkpoint, and reads the iterations told."""
    spec = RunSpec.read({"network": "ring:agents=3", "iterations": 20, "every": 1})
    setting = settings_of(spec, tmp_path)["0"]
    setting.folder.mkdir()
    ones = {OF_AGENTS + name: torch.ones(1, 1) for name in MEASURED}

    def reached(iteration):
        return Checkpoint(State(iteration, {}), [(k, ones) for k in range(iteration + 1)], ())

    def measured():
        lines = (setting.folder / METRICS).read_text().splitlines()
        return [line.split(",")[0] for line in lines]

    return lambda: Records(setting, network_of(spec), bytes(32)), reached, measured, setting


def test_metrics_have_a_header_and_whole_lines_after_a_process_ended_in_the_middle(recorded):
    begin, reached, measured, setting = recorded
    records = begin()
    (setting.folder / METRICS).touch()
    records.resume(None)
    records.advanced(reached(1))
    records.advanced(reached(2))
    assert measured() == ["iteration", "1", "2"]
    with (setting.folder / METRICS).open("a") as file:
        file.write("3")  # the line of iteration 3 was cut off
    records.resume(reached(1))
    records.advanced(reached(2))
    assert measured() == ["iteration", "1", "2"]


def test_metrics_have_no_line_twice_after_a_process_ended_before_its_first_checkpoint(recorded):
    begin, reached, measured, _ = recorded
    for _ in range(2):
        records = begin()
        records.resume(None)
        records.advanced(reached(1))
    assert measured() == ["iteration", "1"]


def test_metrics_have_the_line_of_the_round_in_which_an_agent_was_stopped(tmp_path, monkeypatch):
    own = own_data(tmp_path / "own.npz", 0)
    spec = RunSpec.read(tomllib.loads(SPEC) | {"dataset": str(own), "every": 1})
    stop_in_round(monkeypatch, 2)
    assert set(train(spec, tmp_path).values()) == {None}
    monkeypatch.undo()
    train(spec, tmp_path)
    lines = (tmp_path / "0" / METRICS).read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["iteration", "1", "2", "3", "4"]


def stop_in_round(monkeypatch, number):
    """Let agents be asked to end while they train a round."""
    real = Neighbours.__init__

    def init(self, *given, stopped, **named):
        def watched(k, *rest):
            if k == number:
                stopped.set()
            return Neighbours.exchange(self, k, *rest)

        real(self, *given, stopped=stopped, **named)
        self.exchange = watched

    monkeypatch.setattr(Neighbours, "__init__", init)


def test_who_lacks_the_extra_is_told_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    with pytest.raises(BezoarError, match=r"pip install bezoar\[cluster\]"):
        call("key", "--name", "b", "--out", tmp_path)


def test_starts_that_need_a_training_are_refused(tmp_path, tiny_mnist):
    spec = RunSpec.read({"network": "ring:agents=3", "model": "mlp", "start": "pretrained"})
    with pytest.raises(BezoarError, match="takes a training of its own"):
        run_agent(settings_of(spec, tmp_path)["0"])


def test_attacks_that_need_to_hear_others_first_are_refused(tmp_path, tiny_mnist):
    attack = "sign_flip:broadcast=false"
    spec = RunSpec.read({"network": "ring:agents=3,poisoned=1", "attack": attack})
    with pytest.raises(BezoarError, match="an agent sends before it hears others"):
        run_agent(settings_of(spec, tmp_path)["0"])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"algorithm": "gossip"}, "algorithm gossip: .*allowed: adapt_then_combine, combine_then"),
        ({"algorithm": "gradient_tracking"}, "algorithm gradient_tracking: .* one model an iter"),
        ({"aggregator": "foolsgold"}, "foolsgold: it sums up what each neighbour changes"),
        ({"listening": [3]}, r"listening: agents .* do not tell .*, found \[3\]; allowed: \[\]"),
        ({"rounds": 2}, "rounds: agents .* exchange once an iteration, found 2; allowed: 1"),
        ({"silent_agents": 0.1}, "silent_links, silent_agents: .*; allowed: 0"),
        ({"network": {"over_time": ["ring", "line"]}}, "the same neighbours in every iteration"),
    ],
)
def test_variants_that_agents_alone_cannot_follow_are_refused(tmp_path, tiny_mnist, fields, told):
    spec = RunSpec.read({"network": "ring:agents=3,poisoned=1", **fields})
    with pytest.raises(BezoarError, match=told):
        run_agent(settings_of(spec, tmp_path)["0"])


def test_what_is_wrong_with_a_run_is_told_in_a_line(tmp_path, spec_file, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec_file.write_text(SPEC + f'dataset = "{own_data(tmp_path / "own.npz", 0)}"\nsamples = 2\n')
    run = run_local(RunSpec.read(read_toml(spec_file)), tmp_path / "agents", patience=1.0, wait=1.0)
    assert sorted(run.failed) == ["0", "1", "2"]
    told = capfd.readouterr().err
    assert told == "bezoar: partition iid: 2 samples are too few for 3 agents\n"


def test_an_agent_with_an_unusual_name_finds_its_key(tmp_path, tiny_mnist, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("peers").mkdir()
    Path("run.toml").write_text('network = {name = "from_edges", edges = [["Ward 7", "b"]]}')
    call("key", "--name", "Ward 7", "--out", ".")
    with pytest.raises(BezoarError, match="Ward 7 has the neighbours b; there is no file for b"):
        call("start", "run.toml", "--name", "Ward 7", "--peers", "peers", "--listen", "localhost:0")


@pytest.mark.parametrize("plan", ['{"spec": {}}', '{"holidays": 3}', "[]", "no JSON", ""])
def test_another_run_in_the_same_folder_is_refused_and_nobodys_file_is_replaced(tmp_path, plan):
    (tmp_path / "plan.json").write_text(plan)
    with pytest.raises(BezoarError, match="has agents of another run"):
        run_local(RunSpec.read({}), Path(tmp_path), patience=1.0, wait=1.0)
    assert (tmp_path / "plan.json").read_text() == plan


def test_commands_in_the_documentation_have_their_options():
    page = (Path(__file__).parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")
    shown = re.findall(r"bezoar agents (\w+)((?:.*\\\n)*.*)", page)
    commands = typer.main.get_command(app).commands["agents"].commands
    assert {name for name, _ in shown} == set(commands)
    for name, line in shown:
        known = {option for each in commands[name].params for option in each.opts}
        assert set(re.findall(r"--[a-z-]+", line.partition("`")[0])) <= known, line
