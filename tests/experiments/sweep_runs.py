"""Sweeps that take milliseconds, and what to compare of them."""

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


class Notes(Watch):
    """Remembers everything."""

    def __init__(self):
        self.trained, self.began_at, self.failed, self.messages = [], [], [], []

    def began(self, group, iteration):
        self.trained.append(list(group.keys))
        self.began_at.append(iteration)

    def ended(self, group, failed):
        self.failed.append(failed)

    def said(self, message):
        self.messages.append(message)


def contents(store):
    """Every file of the finished runs that can be reproduced."""
    files = sorted(store.runs_folder.glob("*/*"))
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in files
        if path.name != "provenance.json"
    }
