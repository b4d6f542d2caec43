"""Momentum, memory, false messages and changing networks are what a plain loop makes of them."""

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from plain_variants import VariantLoop
from setting import FAN, TWO_CASTLE, final_models

from bezoar import aggregators, attacks, networks, training
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
    aggregators.MeaMed(),
    aggregators.DistanceFilter(),
    aggregators.TotalVariation(),
]

#: The geometric median is smoothed by a millionth, and found to a hundred-thousandth.
TOLERANCE = {"rfa": 1e-4}


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
    known = aggregators.AGGREGATORS.items()
    by_gram = {name for name, rule in known if getattr(rule, "reads", "") == "gram"}
    here = {rule.name for rule in RULES}
    assert here >= set(aggregators.AGGREGATORS) - simple - by_gram
    assert len(here & by_gram) > 4  # the others by inner products go the same way as these


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
