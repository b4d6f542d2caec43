"""Runs that two ranks train, each in a process of its own.

Run as a script with a folder that holds the datasets of the specs and the word ``cases`` or
``store``, by processes with what ``torchrun`` sets in their environment. ``cases`` trains every
case and writes each rank's models. ``store`` trains one run into a store; if a number follows, rank
1 kills itself in the middle of that iteration, unless it was started again.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from bezoar.agents._ports import free_ports
from bezoar.experiments import RunSpec, Store, follow, leading, prepare, sweep
from bezoar.experiments._prepare import one_shard
from bezoar.networks import shard_of, shard_owners
from bezoar.training import Ranks, Workers

SPARSE = {"name": "random_regular", "agents": 90, "degree": 4, "poisoned": 3}

CASES = {
    "gram": {"aggregator": "ios"},
    "coordinates": {"aggregator": "trimmed_mean", "optimizer": "momentum"},
    "output layers": {"aggregator": "lfighter"},
    "mixing": {"aggregator": "weighted_mean", "local_steps": 2},
    "memory": {"aggregator": "centered_clipping:memory=true", "weight_decay": 0.01},
    "network": {"aggregator": "faba", "model": "mlp:width=8,depth=1", "batch": 4},
    "dynamic labels": {"aggregator": "mean", "attack": "dynamic_label_flip"},
    "dense": {"aggregator": "ios", "network": "two_castle"},
    "ten thousand": {
        "aggregator": "ios",
        "dataset": "few_pixels.npz",
        "network": {"name": "random_regular", "agents": 10_000, "degree": 8, "poisoned": 100},
        "partition": "drawn:samples=8",
        "metrics": ["accuracy_mean"],
    },
}


def spec_of(folder, **fields):
    """A run on some digits, everything measured."""
    common = {"dataset": "digits.npz", "network": SPARSE, "partition": "iid"}
    common |= {"iterations": 4, "every": 2, "agent_metrics": True}
    return RunSpec.read({**common, **fields}, folder)


def stored(folder):
    """The run that is killed."""
    return spec_of(folder, aggregator="ios", optimizer="momentum", iterations=12)


def start(folder, *words, ranks=2):
    """The exit codes of ranks that were started with these words."""
    [port] = free_ports(1)
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    command = [sys.executable, __file__, str(folder), *map(str, words)]
    processes = [
        subprocess.Popen(command, env={**os.environ, **common, "RANK": str(rank)})
        for rank in range(ranks)
    ]
    return [process.wait() for process in processes]


def torchrun(folder, *words):
    """The exit code of ``torchrun`` with two ranks, which it may start again once."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--max-restarts", "1", __file__, str(folder), *map(str, words)]
    return subprocess.run(command, check=False).returncode


def trained(engine):
    """The history of an engine's one run, and ``[agents, D]`` the final models that it holds."""
    last = {}
    [history] = engine.train(observe=lambda k, _, models: last.update(models=models.clone()))
    return history, last["models"][0].flatten(1).numpy()


def train_cases(folder):
    """Write the models and metrics of every case at this rank."""
    found = {}
    with Ranks.joined() as ranks, Workers(1) as workers:
        for name, fields in CASES.items():
            run = prepare(spec_of(folder, **fields))
            shard = shard_of(run.network, shard_owners(run.network, ranks.count), ranks.number)
            history, models = trained(one_shard(run, shard, workers, ranks))
            found |= {f"{name}/members": shard.members, f"{name}/models": models}
            found |= {f"{name}/{metric}": values for metric, values in history.metrics.items()}
        np.savez(folder / f"rank{ranks.number}.npz", **found)


def train_stored(folder, dies_at=None):
    """Train into a store, from where an earlier training stood."""
    store = Store(folder / "store")
    again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    if dies_at is not None and os.environ["RANK"] == "1" and not again:
        fill, calls = Ranks.fill_halo, []

        def dying(*arguments):
            calls.append(arguments)
            if len(calls) == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            fill(*arguments)

        Ranks.fill_halo = dying
    if os.environ["RANK"] != "0":
        return follow(1, store, checkpoint_seconds=0)
    with leading(1, store, checkpoint_seconds=0) as trainer:
        sweep([stored(folder)], store, trainer=trainer)


if __name__ == "__main__":
    torch.set_num_threads(1)
    where, what, *more = sys.argv[1:]
    if what == "cases":
        train_cases(Path(where))
    else:
        train_stored(Path(where), *map(int, more))
