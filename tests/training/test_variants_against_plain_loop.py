"""Momentum, memory, false messages and changing networks are what a plain loop makes of them."""

import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product

import killed_training
import numpy as np
import pytest
from plain_variants import VariantLoop

from bezoar import BezoarError, aggregators, attacks, networks, training
from bezoar.exchange import Tuning
from bezoar.training import Checkpoint, Run, Workers

ITERATIONS = 5

#: Not more than ``2/L`` on these samples, so that steps do not multiply roundings.
STEP = 0.005

#: Felt by some messages and not by others.
THRESHOLD = 0.05

RULES = [
    aggregators.WeightedMean(),
    aggregators.TrimmedMean(),
    aggregators.FABA(),
    aggregators.CenteredClipping(THRESHOLD),
    aggregators.CenteredClipping(THRESHOLD, steps=3, memory=True),
    aggregators.ClippedGossip(THRESHOLD),
    aggregators.IOS(),
    aggregators.IOS(mixing="equal", estimate="max", keep_own=True),
    aggregators.RFA(),
    aggregators.LFighter(),
    aggregators.Median(),
    aggregators.Krum(),
]

#: The geometric median is smoothed by a millionth, and found to a hundred-thousandth.
TOLERANCE = {"rfa": 1e-4}

TWO_CASTLE = networks.two_castle(10, 2)

#: A fan with the same agents poisoned as the two castles.
FAN = networks.fan(10, TWO_CASTLE.poisoned)


def drawn_anew(iteration):
    """Another network in every iteration."""
    return networks.erdos_renyi(10, 0.7, TWO_CASTLE.poisoned, seed=iteration)


#: What runs are given as their network; rules take turns on them.
USUAL = (TWO_CASTLE, networks.fan(10, 1))
SWAPPED = USUAL[::-1]
IN_TURN = ([TWO_CASTLE, FAN],)
ANEW = (drawn_anew,)

#: Networks that change are tried with LFighter where other things change too.
FAST = [rule for rule in RULES if rule.name != "lfighter"]

#: Networks, and what other fields of a run there are.
VARIANTS = {
    "plain step": (USUAL, {"attack": attacks.DynamicLabelFlip(fraction=0.6)}),
    "momentum": (USUAL, {"optimizer": training.Momentum(0.8), "weight_decay": 0.5}),
    "heavy ball": (SWAPPED, {"optimizer": training.HeavyBall(0.6), "weight_decay": 0.5}),
    "one lie to all": (USUAL, {"attack": attacks.SignFlip(1.5)}),
    "a lie to each": (SWAPPED, {"attack": attacks.SignFlip(0.7, broadcast=False)}),
    "two networks in turn": (IN_TURN, {}),
    "networks drawn anew": (ANEW, {}),
    "momentum, a lie to each, two networks in turn": (
        IN_TURN,
        {
            "optimizer": training.Momentum(0.7),
            "attack": attacks.SignFlip(0.5, broadcast=False),
            "weight_decay": 0.5,
        },
    ),
    "heavy ball, one lie to all, networks drawn anew": (
        ANEW,
        {
            "optimizer": training.HeavyBall(0.5),
            "attack": attacks.SignFlip(2.0),
            "schedule": training.InverseSqrt(STEP),
        },
    ),
}

#: By matrix products over the whole network, and neighbourhood by neighbourhood.
WAYS = {"dense": Tuning(), "sparse": Tuning(dense_advantage=0)}

#: After this iteration a checkpoint is written.
KEPT = 2


@dataclass
class Judged:
    """The runs of a variant, and what the plain loop makes of each.

    Attributes:
        setting: what is trained.
        runs: one for each rule.
        models: ``[agents, D]`` the final models.
        consensus: ``[iterations + 1]`` the consensus errors.
        shares: ``[iterations]`` the weight given to poisoned agents.
    """

    setting: object
    runs: list = field(default_factory=list)
    models: list = field(default_factory=list)
    consensus: list = field(default_factory=list)
    shares: list = field(default_factory=list)

    def judge(self, run, network):
        turns = None if isinstance(network, networks.Network) else network
        loop = VariantLoop(self.setting, run, turns=turns)
        consensus, shares = [loop.consensus_error()], []
        for iteration in range(1, ITERATIONS + 1):
            loop.step(iteration)
            consensus.append(loop.consensus_error())
            shares.append(loop.poison_share())
        self.runs.append(run)
        self.models.append(np.stack([loop.vector(model) for model in loop.models]))
        self.consensus.append(np.array(consensus))
        self.shares.append(np.array(shares))


@pytest.fixture(scope="module")
def judged(problem):
    """Judge a variant, the first time that it is asked for."""

    @cache
    def find(name):
        given, options = VARIANTS[name]
        usual = {"attack": attacks.LabelFlip(), "schedule": training.Constant(STEP)}
        metrics = ("consensus_error", "poison_share")
        found = Judged(problem(iterations=ITERATIONS, every=1, metrics=metrics))
        for place, rule in enumerate(RULES if options else FAST):
            network = given[place % len(given)]
            if rule.name == "lfighter" and len(given) == 2:
                network = USUAL[1]  # the loop tries every split of the inputs: the fewer the better
            found.judge(Run(network, rule, **usual | options), network)
        return found

    return find


@dataclass(frozen=True)
class Trained:
    """The same trained by the engine in one way, with a checkpoint in a file."""

    judged: Judged
    setting: object
    histories: list
    path: object


@pytest.fixture(scope="module", params=product(VARIANTS, WAYS), ids=": ".join)
def trained(request, judged, workers, tmp_path_factory):
    name, way = request.param
    path = tmp_path_factory.mktemp("variants") / "checkpoint"

    def keep(checkpoint):
        if checkpoint.iteration == KEPT:
            checkpoint.save(path)

    loop = judged(name)
    setting = replace(loop.setting, tuning=WAYS[way])
    histories = setting.engine(loop.runs, workers).train(keep=keep)
    return Trained(loop, setting, histories, path)


def test_the_engine_gives_what_the_plain_loop_gives(trained):
    judged = trained.judged
    for place, (run, history) in enumerate(zip(judged.runs, trained.histories, strict=True)):
        what = f"{run.aggregator} on {run.network.name}"
        tolerance = TOLERANCE.get(run.aggregator.name, 1e-10)
        expected = judged.models[place]
        size = np.abs(expected).max()
        assert np.abs(history.models.numpy() - expected).max() <= tolerance * size, what
        found, errors = history["consensus_error"], judged.consensus[place]
        np.testing.assert_allclose(found, errors, tolerance, tolerance * size**2, err_msg=what)
        found, shares = history["poison_share"][1:], judged.shares[place]
        if not np.isnan(shares).any():  # the loop tells for rules by weights
            np.testing.assert_allclose(found, shares, 0, 1e-10, err_msg=what)


def test_resumed_in_the_same_bits(trained):
    """By a task, an engine and threads that have seen nothing before."""
    runs = trained.judged.runs
    with Workers(1) as workers:
        start = Checkpoint.load(trained.path)
        found = trained.setting.engine(runs, workers).train(start=start)
    for run, one, other in zip(runs, found, trained.histories, strict=True):
        assert one.models.numpy().tobytes() == other.models.numpy().tobytes(), run
        assert one.metrics.keys() == other.metrics.keys()
        for name in one.metrics:
            assert one[name].tobytes() == other[name].tobytes(), (run, name)


def test_every_rule_is_here():
    simple = {"mean", "local"}  # the weighted mean goes the same way
    assert {rule.name for rule in RULES} == set(aggregators.AGGREGATORS) - simple


def final_models(setting, workers, *runs):
    """Each run's models, trained alone: a run's place among others decides last bits."""
    alone = [setting.engine([run], workers).train() for run in runs]
    return [history.models.numpy() for [history] in alone]


def test_every_feature_changes_the_result(problem, workers):
    """If a feature did nothing, the loop without it would agree as well."""
    setting = problem(iterations=3, every=3, metrics=())
    common = {"attack": attacks.LabelFlip(), "schedule": training.Constant(STEP)}
    rule = aggregators.CenteredClipping(THRESHOLD)
    plain = Run(TWO_CASTLE, rule, **common)
    models = final_models(
        setting,
        workers,
        plain,
        replace(plain, optimizer=training.Momentum(0.8)),
        replace(plain, optimizer=training.HeavyBall(0.8)),
        replace(plain, aggregator=replace(rule, memory=True)),
        replace(plain, attack=attacks.SignFlip(1.0)),
        replace(plain, attack=attacks.SignFlip(1.0, broadcast=False)),
        replace(plain, network=[TWO_CASTLE, FAN]),
        replace(plain, network=drawn_anew),
    )
    for place, one in enumerate(models):
        for other in models[:place]:
            assert np.abs(one - other).max() > 1e-4 * np.abs(one).max()


def test_networks_in_turn_begin_with_the_first(problem, workers):
    setting = problem(iterations=1, every=1, metrics=())
    rule, attack = aggregators.WeightedMean(), attacks.LabelFlip()
    one, other, turns, swapped, by_function = final_models(
        setting,
        workers,
        Run(TWO_CASTLE, rule, attack),
        Run(FAN, rule, attack),
        Run([TWO_CASTLE, FAN], rule, attack),
        Run([FAN, TWO_CASTLE], rule, attack),
        Run(lambda iteration: {1: FAN}[iteration], rule, attack),
    )
    assert turns.tobytes() == one.tobytes()
    assert swapped.tobytes() == other.tobytes()
    assert by_function.tobytes() == other.tobytes()
    assert one.tobytes() != other.tobytes()


def test_zero_momentum_and_one_network_are_nothing_new(problem, workers):
    setting = problem(iterations=3, every=3, metrics=())
    plain = Run(FAN, aggregators.IOS(), attacks.LabelFlip(), weight_decay=0.1)
    expected, *others = final_models(
        setting,
        workers,
        plain,
        replace(plain, optimizer=training.Momentum(0)),
        replace(plain, optimizer=training.HeavyBall(0)),
        replace(plain, network=[FAN, FAN]),
        replace(plain, network=lambda iteration: FAN),
    )
    for found in others:
        assert np.array_equal(found, expected)


def run_script(folder, *arguments):
    script = killed_training.__file__
    return subprocess.run([sys.executable, script, str(folder), *arguments], check=False).returncode


@pytest.mark.parametrize("kind", ["softmax", "network"])
def test_killed_and_resumed_in_another_process(small_mnist, tmp_path, kind):
    """Killed in the middle of its sixth iteration, three after the last checkpoint."""
    tmp_path = tmp_path / kind
    tmp_path.mkdir()
    samples = {
        name: getattr(small_mnist, name)
        for name in ("train", "train_labels", "test", "test_labels")
    }
    np.savez(tmp_path / "samples.npz", **samples)
    assert run_script(tmp_path, "6") == -signal.SIGKILL
    assert Checkpoint.load(tmp_path / "checkpoint").iteration == 3
    assert not (tmp_path / "results.npz").exists()
    assert run_script(tmp_path) == 0
    with Workers(1) as workers:
        engine = killed_training.make_engine(samples, workers, kind == "network")
        expected = killed_training.results(engine.train())
    with np.load(tmp_path / "results.npz") as found:
        assert set(found) == set(expected)
        for name, values in expected.items():
            assert found[name].tobytes() == values.tobytes(), name


def kept(setting, run, path):
    """Write the checkpoint of a training after its second iteration."""
    with Workers(1) as workers:
        setting.engine([run], workers).train(
            keep=lambda checkpoint: checkpoint.iteration == 2 and checkpoint.save(path)
        )


def goes_on(setting, run, path):
    with Workers(1) as workers:
        return setting.engine([run], workers).train(start=Checkpoint.load(path))


def is_refused(setting, run, path):
    with pytest.raises(BezoarError, match=r"checkpoint: it was made in another training; expected"):
        goes_on(setting, run, path)


@pytest.fixture
def setting(problem):
    return problem(iterations=4, every=2, metrics=("consensus_error",))


ATTACK = attacks.LabelFlip()


def test_a_checkpoint_belongs_to_its_networks(setting, tmp_path):
    path = tmp_path / "checkpoint"
    complete = networks.complete(10, TWO_CASTLE.poisoned)
    rule = aggregators.IOS()
    kept(setting, Run([TWO_CASTLE, FAN], rule, ATTACK), path)
    goes_on(setting, Run([TWO_CASTLE, FAN], rule, ATTACK), path)
    for other in (
        [TWO_CASTLE, complete],
        [complete, FAN],
        [FAN, TWO_CASTLE],
        [TWO_CASTLE, FAN, FAN],
        [TWO_CASTLE],
        TWO_CASTLE,
        lambda iteration: [TWO_CASTLE, FAN][(iteration - 1) % 2],
    ):
        is_refused(setting, Run(other, rule, ATTACK), path)


def then(first, second):
    """One network in the first iteration and another from then on."""
    return lambda iteration: first if iteration == 1 else second


def test_a_checkpoint_belongs_to_its_function_of_the_iteration(setting, tmp_path):
    path = tmp_path / "checkpoint"
    complete = networks.complete(10, TWO_CASTLE.poisoned)
    rule = aggregators.IOS()
    kept(setting, Run(then(TWO_CASTLE, FAN), rule, ATTACK), path)
    goes_on(setting, Run(then(TWO_CASTLE, FAN), rule, ATTACK), path)
    is_refused(setting, Run(then(TWO_CASTLE, complete), rule, ATTACK), path)


def test_a_checkpoint_belongs_to_its_options(setting, tmp_path):
    path = tmp_path / "checkpoint"
    run = Run(
        FAN,
        aggregators.CenteredClipping(memory=True),
        attacks.SignFlip(0.5),
        optimizer=training.Momentum(0.5),
    )
    kept(setting, run, path)
    goes_on(setting, run, path)
    for changes in (
        {"optimizer": training.Momentum(0.6)},
        {"optimizer": training.HeavyBall(0.5)},
        {"optimizer": training.PlainStep()},
        {"attack": attacks.SignFlip(0.6)},
        {"attack": attacks.SignFlip(0.5, broadcast=False)},
        {"aggregator": aggregators.CenteredClipping()},
    ):
        is_refused(setting, replace(run, **changes), path)


def test_many_poisoned_agents_are_told_apart(problem, tmp_path):
    """Of many poisoned agents a network prints the first few; the checkpoint knows all."""
    setting = problem(agents=24, iterations=4, every=2, metrics=())
    path = tmp_path / "checkpoint"
    rule = aggregators.IOS()
    one, other = (networks.complete(24, {*range(9), last}) for last in (9, 10))
    assert repr(one) == repr(other)
    kept(setting, Run(one, rule, ATTACK), path)
    goes_on(setting, Run(one, rule, ATTACK), path)
    is_refused(setting, Run(other, rule, ATTACK), path)
    is_refused(setting, Run([other, other], rule, ATTACK), path)


def test_the_poisoned_agents_may_not_change():
    match = (
        r"network: expected 10 agents with \[4, 5\] poisoned in every iteration, found 10 with "
        r"\[4\] in iteration 2"
    )
    with pytest.raises(BezoarError, match=match):
        Run([TWO_CASTLE, FAN.with_poisoned({4})], aggregators.Mean(), ATTACK)


def test_the_number_of_agents_may_not_change():
    match = r"expected 10 agents .*, found 12 with \[5, 6\] in iteration 3"
    with pytest.raises(BezoarError, match=match):
        Run([TWO_CASTLE, FAN, networks.two_castle(12, 2)], aggregators.Mean(), ATTACK)


def test_what_a_function_gives_is_checked_when_it_is_asked(setting, workers):
    run = Run(then(TWO_CASTLE, FAN.with_poisoned({5})), aggregators.Mean(), ATTACK)
    with pytest.raises(BezoarError, match=r"found 10 with \[5\] in iteration 2"):
        setting.engine([run], workers).train()
    run = Run(then(TWO_CASTLE, "fan"), aggregators.Mean(), ATTACK)
    with pytest.raises(BezoarError, match="expected a Network in iteration 2, found 'fan'"):
        setting.engine([run], workers).train()


def test_no_network_is_no_network():
    with pytest.raises(BezoarError, match=r"network: .* needs at least one, found none"):
        Run([], aggregators.Mean(), ATTACK)


def test_a_rule_must_be_possible_on_every_network(setting, workers):
    """It is refused before anything is trained, not when its turn comes."""
    turns = [TWO_CASTLE, networks.ring(10, TWO_CASTLE.poisoned)]
    run = Run(turns, aggregators.TrimmedMean(), ATTACK)
    with pytest.raises(BezoarError, match="trimmed_mean: impossible at agent 4 of the ring"):
        setting.engine([run], workers)
