"""What the advisor's study keeps: what every rule did in full, and in the advisor's pilots."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

#: The accuracy of every rule in every case; and in the advisor's pilots, scenario after scenario.
RESULTS, PILOTS = Path("docs/results/advisor.csv"), Path("docs/results/advisor-pilots.csv")


class Key(NamedTuple):
    """What tells cases apart."""

    family: str
    network: str
    partition: str
    attack: str
    placement: str
    seed: int


class Result(NamedTuple):
    """What a rule did in one case."""

    key: Key
    rule: str
    accuracy: float


#: The accuracy of every rule in a case.
Accuracies = dict[str, float]


def read_results(path: Path) -> list[Result]:
    """What every rule did in every case."""
    return [
        Result(Key(family, name, partition, attack, place, int(seed)), rule, float(accuracy))
        for family, name, partition, attack, place, seed, rule, accuracy in _read(path)
    ]


def by_case(results: Iterable[Result]) -> dict[Key, Accuracies]:
    """The accuracies of every case."""
    found: dict[Key, Accuracies] = {}
    for row in results:
        found.setdefault(row.key, {})[row.rule] = row.accuracy
    return found


def read_pilots(path: Path) -> dict[tuple[str, str], dict[str, list[float]]]:
    """By network and partition, what every rule did in each scenario; NaN where it was dropped."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for name, partition, rule, accuracies in _read(path):
        found.setdefault((name, partition), {})[rule] = [float(x) for x in accuracies.split()]
    return found


def _read(path: Path) -> list[list[str]]:
    """The rows of a file, without the first."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def add_rows(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Add rows to a file; the first has the names of columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([names, *rows] if new else rows)
