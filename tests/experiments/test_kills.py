"""Sweeps that are killed, and sweeps beside each other, in real processes."""

import json
import os
import random
import signal
import time

import pytest
from sweep_server import CALLS, MOVES, TORN, Server

from bezoar.experiments import Store

KILLS = 50

#: Three groups on real digits: few agents with many samples, and many agents with few.
ITERATIONS = 60
SHARED = {"dataset": "some_digits", "iterations": ITERATIONS, "every": 7}
DOCUMENTS = [
    SHARED
    | {
        "network": ["fan", "two_castle"],
        "partition": "by_class",
        "aggregator": ["ios", "rfa", {"name": "clipped_gossip", "threshold": 1.0}],
        "attack": "dynamic_label_flip",
        "keep_models": True,
    },
    SHARED
    | {
        "network": {"name": "ring", "agents": 20},
        "poisoned": [[3, 11]],
        "partition": {"name": "dirichlet", "alpha": 5.0},
        "aggregator": ["trimmed_mean", "lfighter"],
        "seed": [1, 2],
        "dtype": "float64",
    },
]
GROUPS = 3

#: So many iterations before its end, a group may be killed while its runs are saved.
NEAR = 6

#: What may differ between two computations of a run.
TIMES = ("started", "ended", "seconds", "resumed_after")


@pytest.fixture(scope="module")
def server():
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(server, tmp_path_factory):
    """The store of a sweep that nobody disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    order = {"documents": DOCUMENTS, "store": str(folder / "store"), "log": str(folder / "log")}
    assert server.sweep(**order) == 0
    assert len(advances(events(folder / "log"))) == GROUPS * ITERATIONS
    return folder / "store"


def events(log, process=None):
    """What processes wrote down, or one of them."""
    if not log.exists():
        return []
    written = [json.loads(line) for line in log.read_text().splitlines()]
    return [event for event in written if process in (None, event["process"])]


def advances(written):
    """The iterations that were computed, as pairs of runs and number."""
    return [
        (tuple(event["keys"]), event["iteration"])
        for event in written
        if event["event"] == "advanced"
    ]


def contents(store):
    """Every file of the finished runs, without the times at which they were computed."""
    found = {}
    for path in sorted((store / "runs").rglob("*")):
        content = path.read_bytes() if path.is_file() else None
        if path.name == "provenance.json":
            document = json.loads(content)
            content = {name: value for name, value in document.items() if name not in TIMES}
        found[str(path.relative_to(store))] = content
    return found


def places(store):
    """Where every file of the finished runs lies on the disk, and when it was last changed."""
    folder = store / "runs"
    return {
        path: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in ([] if not folder.exists() else sorted(folder.glob("*/**/*")))
    }


def next_death(rng, log, finished, left):
    """When and how to die next, so that ``left`` deaths are spread over what is left to do."""
    done = advances(events(log))
    remaining = ITERATIONS * GROUPS - len(set(done))
    late = rng.random() < 0.5
    unsaved = len(set(done[-1][0]) - finished) if done else 0
    near = unsaved and done[-1][1] > ITERATIONS - NEAR and rng.random() < 0.8
    if remaining == 0 or (near and remaining > 3 * left):  # while runs are saved
        calls, each = rng.choice([(CALLS, 10), (TORN, 3)])  # at least so many a run
        most = each * unsaved if remaining or left == 1 else 1  # others must find something to do
        return {"after": 0, "calls": calls, "skip": rng.randrange(most), "late": late}
    ways = [
        {"calls": MOVES},  # a file is written, and not yet moved to its place
        {"calls": TORN},  # half of a file is written
        {},  # between two iterations
    ]
    if remaining > 3 * left:  # those get on by one iteration more, these by a few
        ways += [
            {"calls": MOVES, "late": True},  # a file is just moved
            {"calls": CALLS, "skip": rng.randrange(12), "late": late},
            {"outside": rng.uniform(0, 0.05)},  # from outside, at any moment
        ]
    most = max(1, min(remaining - 2, 2 * remaining // left - 4))
    return {"after": rng.randint(1, most), **rng.choice(ways)}


def killed_from_outside(server, order, log, after, delay):
    """Kill a process some time after it has computed so many iterations."""
    process = server.start(**order)
    while server.is_running(process) and len(advances(events(log, process))) < after:
        time.sleep(0.005)
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    return server.wait(process)


def test_killed_fifty_times_a_sweep_ends_in_the_same_bytes(server, undisturbed, tmp_path):
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")  # shown if the test fails
    rng = random.Random(seed)
    kills = 0
    while kills < KILLS:  # the last of them may find the sweep done; then they are for another
        folder = tmp_path / f"after {kills}"
        folder.mkdir()
        kills += kill_and_complete(server, folder, rng, KILLS - kills)
        assert contents(folder / "store") == contents(undisturbed)
        check_is_tidy(folder / "store")


def kill_and_complete(server, folder, rng, most):
    """Kill a sweep so many times, or until it is done, and complete it; returns how many."""
    store, log = folder / "store", folder / "log"
    order = {"documents": DOCUMENTS, "store": str(store), "log": str(log)}
    kills, code, seen = 0, None, {}
    while code != 0:
        before, finished = len(events(log)), set(Store(store).finished_keys())
        death = next_death(rng, log, finished, most - kills) if kills < most else {}
        if "outside" in death:
            code = killed_from_outside(server, order, log, death["after"], death["outside"])
        else:
            # On the way to a death among the savings, only what is always kept is kept.
            pause = 1000 if death.get("after") == 0 else 0
            code = server.sweep(**order, death=death, checkpoint_seconds=pause)
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
        for keys, iteration in advances(events(log)[before:]):
            assert finished.isdisjoint(keys), f"computed again in iteration {iteration}"
        now = places(store)
        assert seen.items() <= now.items(), "a finished run was touched"
        seen = now
    assert [event for event in events(log) if event["event"] == "said"] == []  # no damage found
    # A kill costs what was computed since the last checkpoint: a few iterations at the most.
    assert len(advances(events(log))) <= GROUPS * ITERATIONS + NEAR * kills
    return kills


def check_is_tidy(store):
    """Nothing is left of groups, and nothing else once the garbage is collected."""
    groups = store / "work" / "groups"
    assert [path for path in groups.rglob("*") if path.is_file()] == []
    Store(store).gc()
    assert list((store / "work" / "staging").iterdir()) == []


def test_two_sweeps_at_once_share_the_work(server, undisturbed, tmp_path):
    store, log = tmp_path / "store", tmp_path / "log"
    results = [tmp_path / name for name in ("one", "two")]
    processes = [
        server.start(documents=DOCUMENTS, store=str(store), log=str(log), results=str(result))
        for result in results
    ]
    assert [server.wait(process) for process in processes] == [0, 0]
    computed = advances(events(log))
    assert len(computed) == len(set(computed)) == GROUPS * ITERATIONS  # nothing twice
    assert contents(store) == contents(undisturbed)  # nothing lost, and the same bits
    one, two = (json.loads(result.read_text()) for result in results)
    assert one == two
    assert set(one) == set(Store(store).finished_keys())
    assert {event["process"] for event in events(log) if event["event"] == "began"} == set(
        processes
    )


def test_one_of_two_sweeps_dies_and_the_other_does_everything(server, undisturbed, tmp_path):
    store, log = tmp_path / "store", tmp_path / "log"
    order = {"documents": DOCUMENTS, "store": str(store), "log": str(log)}
    dying = server.start(**order, death={"after": 20, "calls": MOVES})
    while not advances(events(log, dying)):
        time.sleep(0.005)
    other = server.start(**order, results=str(tmp_path / "results"))
    assert server.wait(dying) == -signal.SIGKILL
    assert server.wait(other) == 0
    assert contents(store) == contents(undisturbed)
    began = [event for event in events(log, other) if event["event"] == "began"]
    assert [event["iteration"] for event in began if event["iteration"]] == [20]  # it went on
    assert None not in json.loads((tmp_path / "results").read_text())
    check_is_tidy(store)


def test_a_sweep_waits_for_what_another_computes_and_says_so(server, undisturbed, tmp_path):
    store, log = tmp_path / "store", tmp_path / "log"
    order = {"documents": DOCUMENTS[:1], "store": str(store), "log": str(log)}
    first = server.start(**order)
    while not advances(events(log, first)):
        time.sleep(0.005)
    second = server.start(**order, results=str(tmp_path / "results"))
    assert [server.wait(process) for process in (first, second)] == [0, 0]
    assert [event["event"] for event in events(log, second)] == ["said"]
    [event] = events(log, second)
    assert event["message"] == "waiting for 6 runs that another sweep is computing"
    assert set(json.loads((tmp_path / "results").read_text())) == set(Store(store).finished_keys())


def test_what_a_killed_sweep_began_is_finished_as_it_was_begun(server, undisturbed, tmp_path):
    """Also by a sweep of other specs, one of which was in the group."""
    store, log = tmp_path / "store", tmp_path / "log"
    order = {"store": str(store), "log": str(log)}
    code = server.sweep(**order, documents=DOCUMENTS[:1], death={"after": 5, "calls": MOVES})
    assert code == -signal.SIGKILL
    fewer = DOCUMENTS[0] | {"network": "fan", "aggregator": "rfa"}
    more = fewer | {"aggregator": ["rfa", "mean"]}
    assert server.sweep(**order, documents=[more]) == 0
    groups = [event["keys"] for event in events(log) if event["event"] == "began"]
    assert groups[0] == groups[1]
    assert len(groups[2]) == 1  # what was not in the group that was begun
    expected = contents(undisturbed)
    kept = {path: content for path, content in contents(store).items() if path in expected}
    assert len({path.split("/")[1] for path in kept}) == 6
    assert kept.items() <= expected.items()


#: Networks with batch norm, momentum, augmentation and local steps, from a pretrained start.
NETWORKS = {
    "dataset": "digit_images",
    "model": "resnet18:width=2",
    "start": {"name": "pretrained", "epochs": 1, "batch": 40, "augment": True},
    "network": {"name": "ring", "agents": 4},
    "aggregator": ["ios", {"name": "centered_clipping", "memory": True}],
    "optimizer": "momentum",
    "weight_decay": 0.01,
    "batch": 4,
    "augment": True,
    "local_steps": 2,
    "iterations": 6,
    "every": 3,
    "metrics": ["accuracy", "consensus_error", "heterogeneity"],
    "gradient_samples": 6,
    "keep_models": True,
}


#: How often networks are killed; ``make kills`` does it more often.
NETWORK_KILLS = int(os.environ.get("BEZOAR_KILLS", "3"))


def test_networks_killed_at_random_moments_end_in_the_same_bytes(server, tmp_path):
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")  # shown if the test fails
    rng = random.Random(seed)
    order = {"documents": [NETWORKS], "log": str(tmp_path / "log")}
    undisturbed = tmp_path / "undisturbed"
    assert server.sweep(**order, store=str(undisturbed)) == 0
    assert len(Store(undisturbed).finished_keys()) == 3
    kills = 0
    while kills < NETWORK_KILLS:
        store, code = tmp_path / f"after {kills}", None
        while code != 0:
            ways = [{"calls": MOVES}, {"calls": MOVES, "late": True}, {"calls": TORN}, {}]
            death = (
                {"after": rng.randint(1, 3), **rng.choice(ways)} if kills < NETWORK_KILLS else {}
            )
            code = server.sweep(**order, store=str(store), death=death)
            assert code in (0, -signal.SIGKILL)
            kills += code != 0
        assert contents(store) == contents(undisturbed)
        check_is_tidy(store)
