"""A checkpoint belongs to one training: its networks and options, also in another process."""

import signal
import subprocess
import sys
from dataclasses import replace

import killed_training
import numpy as np
import pytest
from setting import FAN, TWO_CASTLE, then

from bezoar import BezoarError, aggregators, attacks, networks, training
from bezoar.training import Checkpoint, Run, Workers

ATTACK = attacks.LabelFlip()


@pytest.fixture
def setting(problem):
    return problem(iterations=4, every=2, metrics=("consensus_error",))


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
