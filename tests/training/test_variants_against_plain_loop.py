"""Momentum, memory, false messages and changing networks are what a plain loop makes of them."""

import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace

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
    return networks.erdos_renyi(10, 0.8, TWO_CASTLE.poisoned, seed=iteration)


@dataclass(frozen=True)
class Variant:
    """What the runs of a variant have in common.

    Attributes:
        networks: what a run may be given as its network; every rule is tried on each.
        options: other fields of a run.
    """

    networks: tuple = (TWO_CASTLE, networks.fan(10, 1))
    options: dict = field(default_factory=dict)

    def runs(self):
        common = {"attack": attacks.LabelFlip(), "schedule": training.Constant(STEP)}
        return [
            Run(network, rule, **common | self.options)
            for network in self.networks
            for rule in RULES
        ]


IN_TURN = ([TWO_CASTLE, FAN],)
ANEW = (drawn_anew,)

VARIANTS = {
    "plain step": Variant(options={"attack": attacks.DynamicLabelFlip(fraction=0.6)}),
    "momentum": Variant(options={"optimizer": training.Momentum(0.8), "weight_decay": 0.5}),
    "heavy ball": Variant(options={"optimizer": training.HeavyBall(0.6), "weight_decay": 0.5}),
    "the same lie to all": Variant(options={"attack": attacks.SignFlip(1.5)}),
    "a lie to each": Variant(options={"attack": attacks.SignFlip(0.7, broadcast=False)}),
    "two networks in turn": Variant(IN_TURN),
    "a network drawn anew": Variant(ANEW),
    "momentum, a lie to each, two networks": Variant(
        IN_TURN,
        {
            "optimizer": training.Momentum(0.7),
            "attack": attacks.SignFlip(0.5, broadcast=False),
            "weight_decay": 0.5,
        },
    ),
    "heavy ball, the same lie to all, networks drawn anew": Variant(
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

each_way = pytest.mark.parametrize("way", WAYS)


@dataclass(frozen=True)
class Judged:
    """A variant and what the plain loop makes of it.

    Attributes:
        setting: what is trained.
        runs: the variant's runs.
        models: ``[agents, D]`` the final models of each run.
        consensus: ``[iterations + 1]`` the consensus error of each run.
        shares: ``[iterations]`` the weight given to poisoned agents in each run.
    """

    setting: object
    runs: list
    models: list
    consensus: list
    shares: list

    def engine(self, workers, way):
        return replace(self.setting, tuning=WAYS[way]).engine(self.runs, workers)


@pytest.fixture(scope="module", params=VARIANTS)
def judged(request, problem):
    variant = VARIANTS[request.param]
    setting = problem(iterations=ITERATIONS, every=1, metrics=("consensus_error", "poison_share"))
    runs, models, consensus, shares = variant.runs(), [], [], []
    given = [network for network in variant.networks for _ in RULES]
    for run, network in zip(runs, given, strict=True):
        turns = None if isinstance(network, networks.Network) else network
        loop = VariantLoop(setting, run, turns=turns)
        errors, weights = [loop.consensus_error()], []
        for iteration in range(1, ITERATIONS + 1):
            loop.step(iteration)
            errors.append(loop.consensus_error())
            weights.append(loop.poison_share())
        models.append(np.stack([loop.vector(model) for model in loop.models]))
        consensus.append(np.array(errors))
        shares.append(np.array(weights))
    return Judged(setting, runs, models, consensus, shares)


@each_way
def test_the_engine_gives_what_the_plain_loop_gives(judged, workers, way):
    histories = judged.engine(workers, way).train()
    for place, (run, history) in enumerate(zip(judged.runs, histories, strict=True)):
        tolerance = TOLERANCE.get(run.aggregator.name, 1e-10)
        what = f"{run.aggregator} on {run.network.name}"
        expected = judged.models[place]
        off = np.abs(history.models.numpy() - expected).max()
        assert off <= tolerance * np.abs(expected).max(), what
        np.testing.assert_allclose(
            history["consensus_error"], judged.consensus[place], tolerance, err_msg=what
        )
        if (
            isinstance(run.aggregator, aggregators.WeightedAggregator)
            and run.aggregator.name != "rfa"
        ):
            found, shares = history["poison_share"][1:], judged.shares[place]
            np.testing.assert_allclose(found, shares, 0, 1e-10, err_msg=what)


@pytest.mark.parametrize("at", [1, 4])
@each_way
def test_resumed_in_the_same_bits(judged, way, at, tmp_path):
    path = tmp_path / "checkpoint"

    def keep(checkpoint):
        if checkpoint.iteration == at:
            checkpoint.save(path)

    with Workers(2) as workers:
        expected = judged.engine(workers, way).train(keep=keep)
    with Workers(1) as workers:
        found = judged.engine(workers, way).train(start=Checkpoint.load(path))
    for run, one, other in zip(judged.runs, found, expected, strict=True):
        assert one.models.numpy().tobytes() == other.models.numpy().tobytes(), run
        assert one.metrics.keys() == other.metrics.keys()
        for name in one.metrics:
            assert one[name].tobytes() == other[name].tobytes(), (run, name)


def test_every_rule_is_here():
    simple = {"mean", "local"}  # the weighted mean goes the same way
    assert {rule.name for rule in RULES} == set(aggregators.AGGREGATORS) - simple


def final_models(setting, workers, *runs):
    return [history.models.numpy() for history in setting.engine(runs, workers).train()]


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


def test_killed_and_resumed_in_another_process(small_mnist, tmp_path):
    """Killed in the middle of its sixth iteration, three after the last checkpoint."""
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
        engine = killed_training.make_engine(samples, workers)
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
    with pytest.raises(BezoarError, match="network: .* needs at least one, found none"):
        Run([], aggregators.Mean(), ATTACK)


def test_a_rule_must_be_possible_on_every_network(setting, workers):
    """It is refused before anything is trained, not when its turn comes."""
    turns = [TWO_CASTLE, networks.ring(10, TWO_CASTLE.poisoned)]
    run = Run(turns, aggregators.TrimmedMean(), ATTACK)
    with pytest.raises(BezoarError, match="trimmed_mean: impossible at agent 4 of the ring"):
        setting.engine([run], workers)
