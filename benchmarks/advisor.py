"""``python -m benchmarks.advisor``: is the advisor's advice good on networks it has not seen?

Every case is a network, a number of poisoned agents and a partition, which the advisor is told,
and places of the poisoned agents and an attack, which it is not told. In every case all rules are
trained in full, and what the recommended rule lost against the best one is compared with what
simpler ways to choose would have lost. Whatever learns from other networks, the advisor too, never
sees the family that it is tried on.

What is in the files of results already is not computed again. ``--processes 2`` computes two cases
at a time; ``--only-ask`` trains nothing in full but what is recommended; ``--only-write`` computes
nothing.
"""

import argparse
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks import advisor_page
from benchmarks.advisor_cases import all_networks, cases, poisoned_of, rules_of
from benchmarks.advisor_results import (
    PILOTS,
    RESULTS,
    Key,
    add_rows,
    by_case,
    read_pilots,
    read_results,
)
from benchmarks.advisor_ways import untrained
from bezoar import Network, advise, data
from bezoar.advice import Scenario, Study, train_pilots
from bezoar.data import Dataset
from bezoar.experiments import Choice, read_choice

#: What "in full" means.
ITERATIONS, SAMPLES = 300, 6_000

#: What the advisor is asked with: scenarios, and iterations of each.
EFFORT = (7, 100)

#: A piece of work: what it is about, a function and its arguments.
Job = tuple[str, Callable[..., list[list[Any]]], tuple[Any, ...]]


@cache
def dataset() -> Dataset:
    """The part of MNIST that rules are trained on in full."""
    mnist = data.mnist()
    drawn = np.random.default_rng(0).permutation(len(mnist.train))[:SAMPLES]
    return replace(mnist, train=mnist.train[drawn], train_labels=mnist.train_labels[drawn])


def train(family: str, name: str, case: Scenario, rules: dict[str, Choice]) -> list[list[Any]]:
    """Train rules in a case, in full; a row for each."""
    accuracy, _ = train_pilots(rules, [case], dataset(), ITERATIONS, np.inf, workers=1, times=1)
    key = Key(family, name, case.partition, case.attack, case.placement, case.seed)
    return [[*key, *row] for row in zip(rules, accuracy[:, 0].round(5).tolist(), strict=True)]


def ask(name: str, network: Network, partition: str, study: Study) -> list[list[Any]]:
    """Ask the advisor; what every rule did in its pilots, in a row for each."""
    many = poisoned_of(network)
    advice = advise(network, many, partition=partition, effort=EFFORT, study=study, workers=1)
    assert advice.pilots is not None
    found = zip(advice.pilots.rules, advice.pilots.accuracy.tolist(), strict=True)
    return [
        [name, partition, rule, " ".join(f"{one:.5f}" for one in accuracy)]
        for rule, accuracy in found
    ]


def missing() -> tuple[list[Job], list[Job]]:
    """What is to be trained, and what is to be asked, in an order drawn from the names."""
    results = read_results(RESULTS)
    trained = {(row.key.network, row.key.partition, row.rule) for row in results}
    asked, known = read_pilots(PILOTS).keys(), by_case(results)
    training, asking = [], []
    for family, name, network in all_networks():
        others = ((key.partition, found) for key, found in known.items() if key.family != family)
        study = Study.of(others)
        for case in cases(name, network):
            about = f"{name} {case.partition}"
            rules = {
                text: rule
                for text, rule in rules_of(network).items()
                if (name, case.partition, text) not in trained
            }
            if rules:
                training.append((about, train, (family, name, case, rules)))
            if (name, case.partition) not in asked:
                asking.append((about, ask, (name, network, case.partition, study)))
    return _shuffled(training), _shuffled(asking)


def recommended() -> list[Job]:
    """What the advisor recommends and was not trained in the case."""
    known = by_case(read_results(RESULTS))
    rules = untrained(known, read_pilots(PILOTS))
    by_name = {(key.network, key.partition): rule for key, rule in rules.items()}
    return [
        (
            f"{rule} in {name} {case.partition}",
            train,
            (family, name, case, {rule: read_choice("aggregator", rule)}),
        )
        for family, name, network in all_networks()
        for case in cases(name, network)
        if (rule := by_name.get((name, case.partition))) is not None
    ]


def _shuffled(jobs: Iterable[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: zlib.crc32(job[0].encode()))


def done(jobs: list[Job], processes: int) -> Iterator[list[list[Any]]]:
    """The rows of every piece of work as it is done; each process has one thread."""
    began = time.monotonic()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        found = {pool.submit(work, *given): about for about, work, given in jobs}
        for number, future in enumerate(as_completed(found), 1):
            print(
                f"{number} of {len(jobs)}: {found[future]} ({time.monotonic() - began:.0f} s)",
                flush=True,
            )
            yield future.result()


def main() -> None:
    """Compute what is missing, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advisor")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only-ask", action="store_true")
    parser.add_argument("--only-write", action="store_true")
    given = parser.parse_args()
    if not given.only_ask and not given.only_write:
        for rows in done(missing()[0], given.processes):
            add_rows(RESULTS, [*Key._fields, "rule", "accuracy"], rows)
    if not given.only_write:
        for rows in done(missing()[1], given.processes):  # the advisor knows what was trained
            add_rows(PILOTS, ["network", "partition", "rule", "accuracies"], rows)
        for rows in done(recommended(), given.processes):
            add_rows(RESULTS, [*Key._fields, "rule", "accuracy"], rows)
    print(advisor_page.write())


if __name__ == "__main__":
    main()
