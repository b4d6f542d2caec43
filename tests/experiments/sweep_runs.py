"""Sweeps that take milliseconds, and what to compare of them."""

from bezoar import experiments
from bezoar.experiments import Watch, expand

FIELDS = {
    "dataset": "some_digits",
    "iterations": 6,
    "every": 2,
    "metrics": ["accuracy", "consensus_error"],
    "partition": "by_class",
}


def specs(**fields):
    return expand(FIELDS | {"aggregator": ["ios", "faba", "mean"]} | fields)


def sweep(wanted, store, watch=None, checkpoint_seconds=30.0):
    """A sweep with one thread: trainings as small as these have no work for more."""
    return experiments.sweep(
        wanted, store, watch=watch, checkpoint_seconds=checkpoint_seconds, workers=1
    )


class Notes(Watch):
    """Remembers everything."""

    def __init__(self):
        self.trained, self.began_at, self.failed, self.messages = [], [], [], []

    def began(self, keys, specs, iteration):
        self.trained.append(list(keys))
        self.began_at.append(iteration)

    def ended(self, keys, failed):
        self.failed.append(failed)

    def said(self, message):
        self.messages.append(message)


class Interrupted(Notes):
    """Ctrl-C after an iteration."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def advanced(self, keys, iteration, metrics):
        if iteration == self.at:
            raise KeyboardInterrupt


def contents(store):
    """Every file of the finished runs that can be reproduced."""
    files = sorted(store.runs_folder.glob("*/*"))
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in files
        if path.name != "provenance.json"
    }
