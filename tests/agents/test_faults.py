"""Six agents, and what may happen to one of them: the others go on, and results say it."""

import json
import os
import signal
import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import torch
from rogues import ROGUES, Cable, in_turns, rogue
from several import Several, settings_of, until

from bezoar.agents import (
    Peer,
    Setting,
    collect,
    make_key,
    note,
    read_key,
    read_result,
    run_agent,
    run_local,
)
from bezoar.agents._local import agent_folder
from bezoar.agents._messages import Kind, Miss, Question, answer
from bezoar.experiments import RunSpec, Store, network_of, run_all
from bezoar.report import run_page

NAMES = tuple("012345")


def spec_of(**fields):
    ring = {"name": "ring", "agents": 6, "poisoned": 0}
    common = {"network": ring, "samples": 1200, "aggregator": "weighted_mean", "metrics": ()}
    return RunSpec.read({**common, "agent_metrics": True, **fields})


#: A short run in which every way of sending nonsense has its turn twice.
SHORT = spec_of(iterations=2 * len(ROGUES), every=1000, aggregator="ios:estimate=1")


def status(setting):
    return json.loads((setting.folder / "status.json").read_bytes())


def misses(setting, peer):
    return status(setting)["peers"][peer]["misses"]


def missed(setting, peer):
    """In how many rounds an agent did not hear another so far."""
    return sum(json.loads(told)["peer"] == peer for told in events(setting))


def events(setting):
    path = setting.folder / "events.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def accuracies(histories):
    return {name: history.agents["accuracy"][-1, 0] for name, history in histories.items()}


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """What the others end with where agent 5 is always missing: it trains something else."""
    settings = settings_of(SHORT, tmp_path_factory.mktemp("without"))
    other = settings.pop("5")
    with rogue(other.key, other.peers, lambda *_: answer(Kind.OTHER_SPEC, 1, bytes(32))):
        histories = Several(settings).join()
    assert misses(settings["4"], "5") == {Miss.SPEC: SHORT.iterations}
    assert status(settings["2"])["misses"] == 0
    return histories


def test_whoever_sends_nonsense_might_as_well_not_be_there(tmp_path, without):
    settings = settings_of(SHORT, tmp_path)
    turned = settings.pop("5")
    vector = np.zeros(message_length(without), np.float32)
    with rogue(turned.key, turned.peers, in_turns(vector, list(ROGUES))):
        histories = Several(settings).join()
    for name in NAMES[:5]:
        assert torch.equal(histories[name].models, without[name].models)
    assert misses(settings["4"], "5") == misses(settings["0"], "5") == dict.fromkeys(ROGUES, 2)
    assert status(settings["2"])["misses"] == 0
    assert len(events(settings["0"])) == SHORT.iterations


@pytest.mark.parametrize("why", ["unpinned", "expired"])
def test_whoever_shows_a_wrong_certificate_might_as_well_not_be_there(tmp_path, without, why):
    settings = settings_of(SHORT, tmp_path)
    key = make_key("5", days=1, now=datetime.now(UTC) - timedelta(days=3 * (why == "expired")))
    settings["5"] = replace(settings["5"], key=key, patience=0.05, wait=0.2)
    if why == "expired":
        shown = replace(settings["5"].peers["5"], certificate=key.certificate)
        settings = {
            name: replace(setting, peers=setting.peers | {"5": shown})
            for name, setting in settings.items()
        }
    histories = Several(settings).join()
    for name in NAMES[:5]:
        assert torch.equal(histories[name].models, without[name].models)
    found = misses(settings["4"], "5")
    assert Miss.CERTIFICATE in found
    assert set(found) <= {Miss.CERTIFICATE, Miss.UNREACHABLE}  # it ends before the others do
    assert status(settings["5"])["peers"]["4"]["heard"] == 0


def message_length(histories):
    """How long a message is: softmax regression pads the rows of its models."""
    from bezoar.models import SoftmaxRegression

    model = SoftmaxRegression(10, 784)
    assert next(iter(histories.values())).models.shape == (1, model.parameters)
    return model.classes * model.width


def test_one_starts_late_and_one_is_cut_off_for_a_while(tmp_path):
    spec = spec_of(iterations=100, every=100)
    settings = settings_of(spec, tmp_path, patience=0.5, wait=0.5)
    cables = {name: Cable(settings["2"].peers[name].address) for name in "123"}
    through = {
        name: replace(settings["2"].peers[name], address=c.address) for name, c in cables.items()
    }
    for name in "13":
        settings[name] = replace(settings[name], peers=settings[name].peers | {"2": through["2"]})
    settings["2"] = replace(
        settings["2"], peers=settings["2"].peers | {n: through[n] for n in "13"}
    )
    late = settings.pop("5")
    several = Several(settings)
    several.until(lambda: len(events(settings["0"])) >= 8)  # it goes on without 5
    several.start(late)
    several.until(lambda: late.folder.joinpath("status.json").exists())

    def ahead():
        return missed(settings["1"], "2") - missed(settings["2"], "1")

    before = ahead()
    for cable in cables.values():
        cable.cut()
    # Others soon wait less for an agent that is late; one that hears nobody goes on waiting.
    several.until(lambda: ahead() >= before + 8)
    for cable in cables.values():
        cable.mend()
    found = accuracies(several.join())
    for cable in cables.values():
        cable.close()
    assert status(late)["jumps"] > 0
    assert status(settings["2"])["jumps"] > 0
    assert Miss.LATE in misses(settings["1"], "2")
    assert status(settings["1"])["peers"]["2"]["last"] > 90  # it is heard again
    assert status(settings["0"])["peers"]["5"]["last"] > 90
    [simulated] = run_all([spec], workers=1)
    expected = dict(zip(NAMES, simulated.agents["accuracy"][-1], strict=True))
    assert found == pytest.approx(expected, abs=0.01)


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_one_is_killed_one_frozen_and_one_restarted_from_its_checkpoint(tmp_path):
    spec = spec_of(iterations=200, every=200)
    outcome = []
    run = threading.Thread(
        target=lambda: outcome.append(
            run_local(spec, tmp_path, patience=0.5, wait=60.0, checkpoint_seconds=0.5)
        )
    )
    run.start()
    folders = {name: agent_folder(tmp_path, name) for name in NAMES}
    checkpoints = [folder / "checkpoint.safetensors" for folder in folders.values()]
    until(lambda: all(path.exists() for path in checkpoints))
    processes = {n: int((folder / "process").read_text()) for n, folder in folders.items()}
    os.kill(processes["1"], signal.SIGKILL)
    os.kill(processes["4"], signal.SIGSTOP)
    time.sleep(2.0)
    os.kill(processes["4"], signal.SIGCONT)
    os.kill(processes["0"], signal.SIGTERM)
    plan = json.loads((tmp_path / "plan.json").read_bytes())
    keys = {name: read_key(tmp_path / "keys" / f"{name}.key") for name in NAMES}
    peers = {
        name: Peer(name, key.certificate, f"127.0.0.1:{plan['ports'][name]}")
        for name, key in keys.items()
    }
    again = Setting(
        *(spec, "0", keys["0"], peers, peers["0"].address, folders["0"]),
        patience=0.5,
        wait=1.0,
        workers=1,
    )
    until(lambda: not is_listening(plan["ports"]["0"]))
    assert run_agent(again) is not None
    run.join()
    assert "1" in outcome[0].failed
    paths = [folders[name] / "result.safetensors" for name in NAMES if name != "1"]
    results = [read_result(path.read_bytes(), str(path)) for path in paths]
    statuses = {result.name: result.status for result in results}
    assert all(each["state"] == "finished" for each in statuses.values())
    assert statuses["2"]["peers"]["1"]["misses"][Miss.UNREACHABLE] > 10
    assert statuses["3"]["peers"]["4"]["misses"][Miss.LATE] > 0
    assert statuses["3"]["peers"]["4"]["last"] > 190  # it is heard again
    assert statuses["4"]["jumps"] > 0
    assert statuses["0"]["resumed_after"] > 0
    assert statuses["5"]["peers"]["0"]["last"] > 190
    # A run without the neighbour that was killed.
    rest = {"name": "from_edges", "edges": [[2, 3], [3, 4], [4, 5], [5, 0]]}
    [without] = run_all([spec_of(iterations=200, every=200, network=rest)], workers=1)
    ends = [result.measured["accuracy"][-1] for result in results]
    assert abs(np.mean(ends) - without.agents["accuracy"][-1].mean()) < 0.01
    stored = collect(spec, results, Store(tmp_path / "store"))
    told = note(statuses, network_of(spec))
    assert "no results of 1" in told
    assert "0 was started again after round" in told
    assert told in run_page(stored).caption
    assert collect(spec, results, Store(tmp_path / "store")).key == stored.key
    assert np.isnan(stored.agents["accuracy"][-1, 1])


def test_neighbours_that_claim_to_be_far_ahead_cannot_make_an_agent_skip_the_end(tmp_path):
    spec = spec_of(iterations=5, every=5, network={"name": "complete", "agents": 3})
    settings = settings_of(spec, tmp_path, patience=0.1, wait=1.0)

    def ahead(content, context):
        return answer(Kind.GONE, 2**63, Question.unpack(content).spec)

    liars = [settings.pop(name) for name in "12"]
    with ExitStack() as stack:
        for liar in liars:
            stack.enter_context(rogue(liar.key, liar.peers, ahead))
        [history] = Several(settings).join().values()
    assert history.iterations.tolist() == [0, 5]
    assert status(settings["0"])["jumps"] > 0


def test_an_agent_refuses_what_it_cannot_be(tmp_path):
    from bezoar import BezoarError

    spec = spec_of(iterations=1)
    settings = settings_of(spec, tmp_path)
    with pytest.raises(BezoarError, match="'7' is not an agent of the ring network; allowed: 0, 1"):
        run_agent(replace(settings["0"], name="7"))
    with pytest.raises(BezoarError, match="made for '1', not for the agent '0'"):
        run_agent(replace(settings["0"], key=settings["1"].key))
    with pytest.raises(BezoarError, match="0 has the neighbours 1, 5; there is no file for 5"):
        run_agent(replace(settings["0"], peers={"1": settings["0"].peers["1"]}))
