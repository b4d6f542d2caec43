"""The same bits from neural networks, however they are computed."""

import numpy as np
import pytest
import torch
from small_networks import Residual, gradients_of, run_of, task_of

from bezoar import training
from bezoar.training import Engine, Workers


def bits(histories):
    return [
        (history.models.numpy().tobytes(), {n: v.tobytes() for n, v in history.metrics.items()})
        for history in histories
    ]


def engine_of(dataset, workers, threads):
    """Three runs, each with a seed, a rule and an attack of its own, and every metric."""
    runs = [
        run_of(rule, attack, optimizer=training.HeavyBall(0.9), seed=seed)
        for seed, (rule, attack) in enumerate(
            [("ios", "label_flip"), ("trimmed_mean", "dynamic_label_flip"), ("mean", "sign_flip")]
        )
    ]
    options = {"threads": threads, "dtype": "float32", "gradient_samples": 10}
    task = task_of(dataset, runs, workers, Residual, **options)
    return Engine(task, iterations=4, every=2, metrics=tuple(training.METRICS))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_with_any_number_of_workers(small_mnist, threads):
    found = []
    for count in (1, 3):
        with Workers(count) as pool:
            found.append(bits(engine_of(small_mnist, pool, threads).train()))
    assert found[0] == found[1]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_when_resumed(small_mnist, workers, threads, tmp_path):
    """Buffers, momentum and how agents are computed are part of the state."""
    path = tmp_path / "checkpoint"

    def keep(checkpoint):
        if checkpoint.iteration == 2:
            checkpoint.save(path)

    expected = bits(engine_of(small_mnist, workers, threads).train(keep=keep))
    with Workers(1) as pool:
        resumed = engine_of(small_mnist, pool, None)
        assert bits(resumed.train(start=training.Checkpoint.load(path))) == expected
        assert resumed.task.threads == threads


def test_gradients_do_not_depend_on_the_other_runs(small_mnist, workers):
    """Agents are computed one by one, so a run has the same bits alone."""
    together = engine_of(small_mnist, workers, 1)
    state = together.step(together.start())
    before = {name: values.clone() for name, values in state.tensors.items()}
    found = gradients_of(together.task, state, update=2)
    for number, run in enumerate(together.runs):
        task = task_of(small_mnist, [run], workers, Residual, dtype="float32")
        own = {name: values[number : number + 1] for name, values in before.items()}
        assert torch.equal(gradients_of(task, training.State(1, own), update=2)[0], found[number])
        for name in task.buffers:
            assert torch.equal(own[name][0], state.tensors[name][number])


def test_runs_together_are_as_alone(small_mnist, workers):
    """Up to rounding: how runs are grouped may decide last bits of an exchange."""
    together = engine_of(small_mnist, workers, 1)
    for run, history in zip(together.runs, together.train(), strict=True):
        task = task_of(small_mnist, [run], workers, Residual, dtype="float32")
        [alone] = Engine(task, iterations=4, every=2, metrics=("test_loss",)).train()
        assert torch.allclose(alone.models, history.models, rtol=1e-4, atol=1e-5)
        assert np.allclose(alone["test_loss"], history["test_loss"], rtol=1e-4)


def test_the_fastest_way_is_found_and_told(small_mnist, workers):
    task = task_of(small_mnist, [run_of()], workers, threads=None)
    assert task.threads is None
    state = task.start()
    assert task.threads in (1, workers.count)
    assert state["threads"].tolist() == [task.threads]
