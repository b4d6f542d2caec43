import os

import networkx as nx
import numpy as np
import pytest
import torch

from bezoar import BezoarError, aggregators, attacks, networks, training
from bezoar.training import Checkpoint, Engine, Run, State, Workers

#: Every attack, and one that leaves some labels alone.
ATTACKS = [attacks.create(name) for name in attacks.ATTACKS]
ATTACKS.append(attacks.create("dynamic_label_flip", fraction=0.5))


@pytest.fixture(params=[False, True], ids=["agent by agent", "in batches"])
def way(request):
    """Make engines compute gradients in one of their two ways, whatever the number of samples."""
    return {"batches": request.param}


#: Of the rules by inner products these; the others go the same way.
BY_GRAM = ("ios", "rfa", "krum", "centered_clipping", "balance")
BY_GRAM += ("ubar", "foolsgold")


def all_rules(attack, network=None, **options):
    return [
        Run(network or networks.fan(), aggregators.create(rule), attack, **options)
        for rule, kind in aggregators.AGGREGATORS.items()
        if getattr(kind, "reads", "") != "gram" or rule in BY_GRAM
    ]


def interrupted(problem, runs, path, at):
    """Train, keeping a checkpoint of one iteration in a file."""

    def keep(checkpoint):
        if checkpoint.iteration == at:
            checkpoint.save(path)

    with Workers(2) as pool:
        return problem.engine(runs, pool).train(keep=keep)


def resumed(problem, runs, path):
    """Train on from a file with an engine and threads that have seen nothing before."""
    with Workers(1) as pool:
        return problem.engine(runs, pool).train(start=Checkpoint.load(path))


def same_bits(left, right):
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one.models.numpy().tobytes() == other.models.numpy().tobytes()
        assert one.iterations.tolist() == other.iterations.tolist()
        assert one.metrics.keys() == other.metrics.keys()
        for name in one.metrics:
            assert one[name].tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_bits_as_without_interruption(problem, way, dtype, tmp_path):
    """Every rule, in both types and ways of computing, on dense and sparse networks."""
    shared = problem(dtype=dtype, iterations=5, every=2, **way)
    dynamic, lying = attacks.create("dynamic_label_flip"), attacks.create("sign_flip")
    runs = all_rules(dynamic) + all_rules(lying, networks.line(10, {4}), weight_decay=0.01)
    path = tmp_path / "checkpoint"
    expected = interrupted(shared, runs, path, at=3)
    same_bits(resumed(shared, runs, path), expected)


def test_the_same_bits_under_every_attack(problem, way, tmp_path):
    shared = problem(dtype="float32", iterations=5, every=2, **way)
    runs = [
        Run(network, aggregators.create("ios"), attack)
        for attack in ATTACKS
        for network in (networks.fan(), networks.line(10, {4}))
    ]
    path = tmp_path / "checkpoint"
    expected = interrupted(shared, runs, path, at=3)
    same_bits(resumed(shared, runs, path), expected)


def test_from_any_iteration(problem, way, tmp_path):
    """Also between measurements, at one, after the last; and the poison share is not lost."""
    shared = problem(dtype="float32", iterations=7, every=3, **way)
    runs = [
        Run(networks.two_castle(), aggregators.create(rule), attacks.create(attack), seed=seed)
        for rule in ("ios", "trimmed_mean", "lfighter", "rfa")
        for seed, attack in enumerate(("label_flip", "dynamic_label_flip", "sign_flip"))
    ]
    with Workers(2) as pool:
        expected = shared.engine(runs, pool).train(
            keep=lambda checkpoint: checkpoint.save(tmp_path / str(checkpoint.iteration))
        )
    for at in range(1, 8):
        same_bits(resumed(shared, runs, tmp_path / str(at)), expected)
        assert Checkpoint.load(tmp_path / str(at)).iteration == at


def test_interrupted_again_and_again(problem, way, workers, tmp_path):
    """One iteration in a life, a life in every iteration."""
    shared = problem(dtype="float32", iterations=6, every=2, **way)
    runs = all_rules(ATTACKS[1])
    path = tmp_path / "checkpoint"

    class DiedError(Exception):
        pass

    def die(checkpoint):
        checkpoint.save(path)
        raise DiedError

    for _ in range(6):
        start = Checkpoint.load(path) if path.exists() else None
        with pytest.raises(DiedError):
            shared.engine(runs, workers).train(start=start, keep=die)
    same_bits(resumed(shared, runs, path), shared.engine(runs, workers).train())


def test_an_engine_that_has_trained_before_carries_nothing_over(problem, way, workers, tmp_path):
    shared = problem(dtype="float32", iterations=5, **way)
    runs = all_rules(ATTACKS[1])
    path = tmp_path / "checkpoint"
    expected = interrupted(shared, runs, path, at=2)
    engine = shared.engine(runs, workers)
    engine.train()
    same_bits(engine.train(start=Checkpoint.load(path)), expected)
    same_bits(engine.train(), expected)


def test_runs_that_diverged_and_costs_without_data(problem, workers, tmp_path):
    path = tmp_path / "checkpoint"
    shared = problem(dtype="float32", iterations=6, every=1)
    wild = Run(
        networks.fan(),
        aggregators.create("weighted_mean"),
        ATTACKS[0],
        schedule=training.schedule("constant", scale=1e38),
    )
    runs = [wild, *all_rules(ATTACKS[0])]
    expected = interrupted(shared, runs, path, at=4)
    assert expected[0].diverged
    same_bits(resumed(shared, runs, path), expected)

    # All but those that need an output layer.
    layered = ("lfighter", "foolsgold")
    runs = [run for run in all_rules(ATTACKS[0]) if run.aggregator.name not in layered]

    def keep(checkpoint):
        if checkpoint.iteration == 3:
            checkpoint.save(path)

    def engine():
        task = training.random_quadratics(runs, workers)
        metrics = ("gradient_norm", "consensus_error")
        return Engine(task, iterations=6, every=2, metrics=metrics)

    expected = engine().train(keep=keep)
    same_bits(engine().train(start=Checkpoint.load(path)), expected)


@pytest.mark.parametrize("names", [(), ("consensus_error",)])
def test_no_metrics_or_few(problem, tmp_path, names):
    shared = problem(iterations=4, metrics=names)
    runs = all_rules(ATTACKS[0])
    path = tmp_path / "checkpoint"
    expected = interrupted(shared, runs, path, at=2)
    same_bits(resumed(shared, runs, path), expected)


def test_progress_goes_on_counting(problem, workers, tmp_path):
    shared = problem(iterations=5)
    runs = all_rules(ATTACKS[0])[:2]
    path = tmp_path / "checkpoint"
    interrupted(shared, runs, path, at=3)
    calls = []
    shared.engine(runs, workers).train(
        progress=lambda iteration, _: calls.append(iteration),
        start=Checkpoint.load(path),
        keep=lambda checkpoint: calls.append(-checkpoint.iteration),
    )
    assert calls == [-4, 4, -5, 5]


def train_from(problem, runs, path):
    with Workers(1) as pool:
        problem.engine(runs, pool).train(start=Checkpoint.load(path))


def test_a_checkpoint_of_another_training_is_refused(problem, tmp_path):
    path = tmp_path / "checkpoint"
    runs = all_rules(ATTACKS[0])[:3]
    shared = problem(iterations=4)
    interrupted(shared, runs, path, at=2)
    for other in (
        problem(iterations=5),
        problem(iterations=4, every=1),
        problem(iterations=4, metrics=("accuracy",)),
        problem(iterations=4, dtype="float32"),
        problem(iterations=4, partition="iid"),
        problem(iterations=4, agents=12),
    ):
        network = networks.fan(agents=other.partition.agents)
        with pytest.raises(BezoarError, match="checkpoint: it was made in another training"):
            train_from(other, all_rules(ATTACKS[0], network)[:3], path)
    for wrong in (runs[:2], runs[::-1], [*runs, runs[0]], all_rules(ATTACKS[1])[:3]):
        with pytest.raises(BezoarError, match=r"expected .*, found .*"):
            train_from(shared, wrong, path)
    with pytest.raises(BezoarError, match=r"expected .*seed=?.* 1, found .* 0"):
        train_from(shared, all_rules(ATTACKS[0], seed=1)[:3], path)


def test_a_checkpoint_of_another_network_of_the_same_size_is_refused(problem, tmp_path):
    path = tmp_path / "checkpoint"
    ring = nx.cycle_graph(10)
    tailed = nx.cycle_graph(9)
    tailed.add_edge(8, 9)
    one, other = (networks.Network(graph, [1]) for graph in (ring, tailed))
    attack = attacks.create("label_flip")
    rule = aggregators.create("ios")
    interrupted(problem(), [Run(one, rule, attack)], path, 2)
    with pytest.raises(BezoarError, match="made in another training"):
        resumed(problem(), [Run(other, rule, attack)], path)


def test_models_of_another_shape_are_refused(problem, workers):
    engine = problem(iterations=4).engine(all_rules(ATTACKS[0])[:3], workers)
    kept = []
    engine.train(keep=kept.append)
    state = State(2, {"models": kept[0].state.models[:2]})
    wrong = Checkpoint(state, kept[0].measured, kept[0].subject)
    with pytest.raises(BezoarError, match=r"expected models \[3, 10, 10, 800\] of torch.float64"):
        engine.train(start=wrong)


@pytest.mark.parametrize("size", [0, 5, 100, 5000, -1])
def test_a_truncated_file_is_told_from_a_whole_one(problem, tmp_path, size):
    path = tmp_path / "checkpoint"
    interrupted(problem(iterations=2), all_rules(ATTACKS[0])[:1], path, at=1)
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    with pytest.raises(BezoarError, match=r"checkpoint: .* is damaged"):
        Checkpoint.load(path)
    with pytest.raises(FileNotFoundError):
        Checkpoint.load(tmp_path / "nothing")


def test_a_file_of_something_else_and_of_a_newer_format(problem, tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "other"
    save_file({"models": torch.zeros(2)}, path)
    with pytest.raises(BezoarError, match="has the format None"):
        Checkpoint.load(path)
    for other in ("1", "3"):  # what the version before wrote, and a newer one will
        save_file({"models": torch.zeros(2)}, path, {"format": other})
        told = f"has the format {other}; this version of bezoar reads 2"
        with pytest.raises(BezoarError, match=told):
            Checkpoint.load(path)
    save_file({"models": torch.zeros(2)}, path, {"format": "2"})
    with pytest.raises(BezoarError, match="is damaged"):
        Checkpoint.load(path)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_checkpoint_before(problem, tmp_path, monkeypatch, failing):
    path = tmp_path / "checkpoint"
    interrupted(problem(iterations=2), all_rules(ATTACKS[0])[:1], path, at=1)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="No space left"):
        interrupted(problem(iterations=2), all_rules(ATTACKS[0])[:1], path, at=2)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint"]


def test_what_is_measured_is_kept_exactly(problem, workers, tmp_path):
    """Also NaN, which the disturbance is where nobody is poisoned."""
    run = Run(networks.fan().with_poisoned(()), aggregators.create("mean"), ATTACKS[0])
    engine = problem(iterations=3, every=1).engine([run], workers)
    path = tmp_path / "checkpoint"
    [history] = engine.train(keep=lambda checkpoint: checkpoint.save(path))
    found = Checkpoint.load(path)
    assert [iteration for iteration, _ in found.measured] == [0, 1, 2, 3]
    for name, values in history.metrics.items():
        kept = np.array([values_then[name].item() for _, values_then in found.measured])
        assert kept.tobytes() == values.tobytes()
