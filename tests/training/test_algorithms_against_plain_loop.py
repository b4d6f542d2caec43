"""Algorithms, rounds and silent links are what a plain loop makes of them, and resume exactly."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from plain_algorithms import LOOPS
from setting import FAN, TWO_CASTLE, final_models
from small_networks import Residual

from bezoar import BezoarError, aggregators, attacks, data, training
from bezoar.exchange import Tuning
from bezoar.networks import NetworkOverTime, UnreliableNetwork
from bezoar.training import Checkpoint, Run, Workers

ITERATIONS = 6

#: After this iteration a checkpoint is written; the training stops in the next.
KEPT = 3

#: Not more than ``2/L`` on these samples, so that steps do not multiply roundings.
STEP = 0.005

LOSSY = UnreliableNetwork(TWO_CASTLE, silent_links=0.3, silent_agents=0.15, seed=3)
IN_TURN = UnreliableNetwork(NetworkOverTime([TWO_CASTLE, FAN]), silent_links=0.2)

ONE_LIE, A_LIE_TO_EACH = attacks.SignFlip(0.8), attacks.SignFlip(0.6, broadcast=False)
LABELS = attacks.DynamicLabelFlip()

MOMENTUM = {"optimizer": training.Momentum(0.6), "weight_decay": 0.4}

#: A rule, an attack, and other fields of a run.
RUNS = [
    (aggregators.IOS(), LABELS, {}),
    (aggregators.TrimmedMean(), ONE_LIE, MOMENTUM),
    (aggregators.CenteredClipping(0.05, memory=True), A_LIE_TO_EACH, MOMENTUM),
    (aggregators.FABA(estimate="max"), A_LIE_TO_EACH, {}),
    (aggregators.WeightedMean(), ONE_LIE, {"optimizer": training.HeavyBall(0.5)}),
]

#: The network, the algorithm, and the number of rounds.
VARIANTS = {
    "three rounds": (TWO_CASTLE, training.AdaptThenCombine(), 3),
    "combine then adapt": (TWO_CASTLE, training.CombineThenAdapt(), 1),
    "gradient tracking": (TWO_CASTLE, training.GradientTracking(), 1),
    "gossip of one": (FAN, training.Gossip(), 1),
    "gossip of four": (TWO_CASTLE, training.Gossip(4), 1),
    "silence": (LOSSY, training.AdaptThenCombine(), 1),
    "silence, networks in turn, two rounds": (IN_TURN, training.CombineThenAdapt(), 2),
    "silence, gradient tracking, two rounds": (LOSSY, training.GradientTracking(), 2),
}

#: Every other variant goes neighbourhood by neighbourhood.
WAYS = {name: Tuning(dense_advantage=place % 2) for place, name in enumerate(VARIANTS)}


class StoppedError(Exception):
    """The training is interrupted."""


@dataclass(frozen=True)
class Trained:
    """What the engine made of a variant, and where it stood in between."""

    setting: object
    runs: list
    histories: list
    path: object


@pytest.fixture(scope="module", params=VARIANTS)
def trained(request, problem, workers, tmp_path_factory):
    network, algorithm, rounds = VARIANTS[request.param]
    metrics = ("consensus_error", "poison_share")
    setting = problem(
        iterations=ITERATIONS,
        every=1,
        metrics=metrics,
        algorithm=algorithm,
        rounds=rounds,
        tuning=WAYS[request.param],
    )
    schedule = training.Constant(STEP)
    runs = [Run(network, rule, attack, schedule, **more) for rule, attack, more in RUNS]
    histories = setting.engine(runs, workers).train()
    path = tmp_path_factory.mktemp("algorithms") / "checkpoint"

    def keep(checkpoint):
        if checkpoint.iteration == KEPT:
            checkpoint.save(path)

    def observe(iteration, *_):
        if iteration > KEPT:
            raise StoppedError

    with pytest.raises(StoppedError):
        setting.engine(runs, workers).train(keep=keep, observe=observe)
    return Trained(setting, runs, histories, path)


def test_the_engine_gives_what_the_plain_loop_gives(trained):
    algorithm = trained.setting.algorithm
    for run, history in zip(trained.runs, trained.histories, strict=True):
        loop = LOOPS[algorithm.name](trained.setting, run, **algorithm.__dict__)
        errors, shares = [loop.consensus_error()], []
        for iteration in range(1, ITERATIONS + 1):
            loop.step(iteration)
            errors.append(loop.consensus_error())
            shares.append(loop.poison_share())
        expected = np.stack(loop.vectors())
        size = np.abs(expected).max()
        assert size > 0
        assert np.abs(history.models.numpy() - expected).max() <= 1e-10 * size, run
        np.testing.assert_allclose(history["consensus_error"], errors, 1e-10, 1e-10 * size**2)
        if not np.isnan(shares).any():  # the loop tells for rules by weights
            np.testing.assert_allclose(history["poison_share"][1:], shares, 0, 1e-10)


def test_resumed_in_the_same_bits(trained):
    """By a task, an engine and threads that have seen nothing before."""
    with Workers(1) as workers:
        engine = trained.setting.engine(trained.runs, workers)
        found = engine.train(start=Checkpoint.load(trained.path))
    for run, one, other in zip(trained.runs, found, trained.histories, strict=True):
        assert one.models.numpy().tobytes() == other.models.numpy().tobytes(), run
        for name in one.metrics:
            assert one[name].tobytes() == other[name].tobytes(), (run, name)


def test_a_checkpoint_belongs_to_its_variant(trained, workers):
    start, setting = Checkpoint.load(trained.path), trained.setting
    more = replace(setting, rounds=4) if setting.rounds > 1 else replace(setting, algorithm=None)
    if setting.rounds == 1 and setting.algorithm == training.AdaptThenCombine():
        more = replace(setting, rounds=2)
    with pytest.raises(BezoarError, match="checkpoint: it was made in another training"):
        more.engine(trained.runs, workers).train(start=start)


def test_every_variant_is_something_new_unless_it_does_nothing(problem, workers):
    setting = problem(iterations=3, every=3, metrics=())
    run = Run(TWO_CASTLE, aggregators.IOS(), attacks.SignFlip(), training.Constant(STEP))
    reliable = UnreliableNetwork(TWO_CASTLE)

    def models(network=TWO_CASTLE, **changes):
        [found] = final_models(replace(setting, **changes), workers, replace(run, network=network))
        return found

    plain = models()
    assert np.array_equal(models(reliable), plain)
    assert np.array_equal(models(algorithm=training.Gossip(10)), plain)
    found = [plain, models(LOSSY), models(rounds=2)]
    others = (training.CombineThenAdapt(), training.GradientTracking(), training.Gossip(9))
    found += [models(algorithm=algorithm) for algorithm in others]
    for place, one in enumerate(found):
        for other in found[:place]:
            assert np.abs(one - other).max() > 1e-4 * np.abs(plain).max()


def test_who_cannot_be_heard_goes_on_alone(problem, workers):
    setting = problem(iterations=3, every=3, metrics=())
    silent = UnreliableNetwork(TWO_CASTLE, silent_agents=1.0)
    for attack in (attacks.LabelFlip(), A_LIE_TO_EACH):
        run = Run(TWO_CASTLE, aggregators.Local(), attack)
        [alone] = final_models(setting, workers, run)
        for name, rule in aggregators.AGGREGATORS.items():
            if name == "foolsgold":  # which needs the same neighbours throughout
                continue
            [found] = final_models(setting, workers, Run(silent, rule(), attack))
            np.testing.assert_allclose(found, alone, 1e-9, 1e-12)


def test_trackers_lead_everyone_to_the_minimum(workers):
    """With a constant step and different costs, Algorithm 1 stops beside it."""
    network = TWO_CASTLE.with_poisoned([])
    run = Run(network, aggregators.WeightedMean(), attacks.LabelFlip(), training.Constant(0.3))
    task = training.random_quadratics([run], workers)
    found = {}
    for algorithm in training.AdaptThenCombine(), training.GradientTracking():
        engine = training.Engine(
            task, iterations=400, every=400, metrics=("gradient_norm",), algorithm=algorithm
        )
        [history] = engine.train()
        found[algorithm.name] = history["gradient_norm"][-1]
    assert found["gradient_tracking"] < 1e-9 < 1e-6 < found["adapt_then_combine"]


class NeedsThree(aggregators.WeightedMean):
    """A rule that is impossible with fewer than three inputs."""

    def inputs_needed(self, estimate):
        return 3 + 0 * estimate


@pytest.mark.parametrize(
    ("network", "rule", "changes", "match"),
    [
        (
            TWO_CASTLE,
            "ios",
            {"algorithm": training.Gossip(11)},
            r"awake: expected 1 … 10 .*found 11",
        ),
        (
            TWO_CASTLE,
            "ios",
            {"algorithm": training.Gossip(), "rounds": 2},
            "rounds: .*found 2 rounds",
        ),
        (LOSSY, "ios", {"algorithm": training.Gossip()}, "neighbours must stay the same"),
        (TWO_CASTLE, "ios", {"rounds": 0}, "rounds: expected an integer of at least 1, found 0"),
        (LOSSY, NeedsThree(), {}, "needs 3 inputs, but where links or agents are silent"),
    ],
)
def test_what_cannot_be_combined_is_refused(problem, workers, network, rule, changes, match):
    rule = aggregators.create(rule) if isinstance(rule, str) else rule
    with pytest.raises(BezoarError, match=match):
        problem(**changes).engine([Run(network, rule, LABELS)], workers)


def test_gradient_tracking_has_one_local_step(problem, workers):
    run = Run(TWO_CASTLE, aggregators.Mean(), LABELS)
    task = problem().engine([run], workers).task
    with pytest.raises(BezoarError, match=r"local_steps: .*found 2 local steps; allowed: 1"):
        training.Engine(task, iterations=1, local_steps=2, algorithm=training.GradientTracking())


def test_who_sleeps_keeps_everything(small_mnist, workers):
    """Models, momentum, and the statistics of batch norm."""
    run = Run(TWO_CASTLE, aggregators.IOS(), LABELS, optimizer=training.Momentum())
    dealt = data.partition("iid")(small_mnist.train_labels, 10, 10, np.random.default_rng(0))
    task = training.NetworkTask(small_mnist, dealt, [run], workers, model=Residual, batch=4)
    engine = training.Engine(task, iterations=2, algorithm=training.Gossip(3))
    before = engine.start()
    copies = {name: tensor.clone() for name, tensor in before.tensors.items()}
    after = engine.step(before).tensors
    moved = (after["models"] != copies["models"]).any(-1)[0]
    assert moved.sum() == 3
    own = ("models", "momentum", "last_messages", *task.buffers)
    assert len(own) > 5
    for name in own:
        changed = (after[name] != copies[name]).reshape(10, -1).any(-1)
        assert torch.equal(changed, moved), name


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_rule_and_attack_goes_with_every_variant(variant, workers):
    network, algorithm, rounds = VARIANTS[variant]
    # FoolsGold goes with Algorithm 1 alone, UBAR needs samples, Bulyan more inputs.
    apart = ("lfighter", "foolsgold", "ubar", "bulyan")
    made = [kind() for name, kind in aggregators.AGGREGATORS.items() if name not in apart]
    rules = [*made, aggregators.LFighter(head=(2, 3)), aggregators.create("nnm+krum")]
    lies = [kind() for kind in attacks.ATTACKS.values()]
    usual = {"schedule": training.Constant(0.1)}
    runs = [Run(network, rule, attacks.SignFlip(), **usual) for rule in rules]
    runs += [Run(network, aggregators.IOS(), attack, **usual) for attack in lies]
    task = training.random_quadratics(runs, workers, 8)
    engine = training.Engine(task, iterations=4, algorithm=algorithm, rounds=rounds)
    histories = engine.train()
    moved = [np.abs(history.models.numpy()[list(network.regular)]).max() for history in histories]
    assert np.isfinite(moved).all(), [
        run for run, far in zip(runs, moved, strict=True) if far != far
    ]
    assert np.median(moved) > 0
