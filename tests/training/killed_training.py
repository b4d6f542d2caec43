"""A training that is killed, and one that goes on from where it stood.

Run as a script with the path of a folder that holds ``samples.npz``: it trains, or goes on if there
is a checkpoint, and writes ``results.npz``. With a number as well it kills its own process, in the
middle of that iteration. It trains a network with batch norm in a folder called ``network``,
elsewhere softmax regression.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
from small_networks import Residual

from bezoar import aggregators, attacks, data, networks, training

ITERATIONS = 8

#: A checkpoint is written after every so many iterations.
KEPT = 3


def make_runs():
    """Momentum, rules with memory, networks that change and fail, lies in messages, all at once."""
    turns = networks.NetworkOverTime([networks.two_castle(10, 2), networks.fan(10, {4, 5})])
    network = networks.UnreliableNetwork(turns, silent_links=0.2)
    rules = [
        aggregators.CenteredClipping(0.05, steps=2, memory=True),
        aggregators.TrimmedMean(),
        aggregators.IOS(),
    ]
    return [
        training.Run(
            network=network,
            aggregator=rule,
            attack=attacks.SignFlip(scale=0.5, broadcast=broadcast),
            schedule=training.Constant(0.005),
            weight_decay=0.01,
            optimizer=optimizer,
        )
        for rule in rules
        for broadcast in (False, True)
        for optimizer in (training.Momentum(0.8), training.HeavyBall(0.5))
    ]


def make_engine(samples, workers, network=False):
    """An engine for the samples in a mapping."""
    arrays = [samples[name] for name in ("train", "train_labels", "test", "test_labels")]
    dataset = data.Dataset("some digits", *arrays, classes=10)
    partition = data.partition("by_class")(dataset.train_labels, 10, 10, np.random.default_rng(0))
    metrics = ("consensus_error", "poison_share", "accuracy")
    if not network:
        task = training.SoftmaxTask(dataset, partition, make_runs(), workers, dtype="float64")
        return training.Engine(
            task,
            iterations=ITERATIONS,
            every=2,
            metrics=metrics,
            algorithm=training.GradientTracking(),
            rounds=2,
        )
    task = training.NetworkTask(
        dataset, partition, make_runs()[:4], workers, model=Residual, batch=8, threads=1
    )
    return training.Engine(task, iterations=ITERATIONS, every=2, metrics=metrics, local_steps=2)


def results(histories):
    """Every number of the histories, by name."""
    found = {}
    for run, history in enumerate(histories):
        found[f"models {run}"] = history.models.numpy()
        found |= {f"{name} {run}": values for name, values in history.metrics.items()}
    return found


def main(folder, dies_in):
    path = folder / "checkpoint"

    def keep(checkpoint):
        if checkpoint.iteration % KEPT == 0:
            checkpoint.save(path)

    def observe(iteration, messages, models):
        if iteration == dies_in:
            os.kill(os.getpid(), signal.SIGKILL)

    start = training.Checkpoint.load(path) if path.exists() else None
    with np.load(folder / "samples.npz") as samples, training.Workers(2) as workers:
        engine = make_engine(samples, workers, folder.name == "network")
        found = results(engine.train(observe=observe, start=start, keep=keep))
    np.savez(folder / "results.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
