"""The field's rules by inner products beside IOS, in the paper's setting and on long messages."""

import statistics
from collections.abc import Callable
from typing import Any

import torch

from benchmarks._measure import Result, Row, interleaved, milliseconds, ratio, tell
from benchmarks._settings import mnist_engine
from benchmarks.long import LENGTH
from benchmarks.steps import halves
from bezoar import aggregators, attacks
from bezoar.aggregators import AGGREGATORS, BEFORE, Aggregator, WeightedAggregator
from bezoar.exchange import Exchange
from bezoar.networks import create
from bezoar.paper import NETWORK_TITLES
from bezoar.training import Run, Workers

#: A rule may take so many times as long as IOS.
LIMIT = 1.5

#: Runs of a rule on each of the paper's networks: as many in all as in ``share``.
COPIES = 9


def field() -> Result:
    """Every rule by inner products, and composed ones, over IOS."""
    ios = aggregators.create("ios", estimate="up_to_1")
    with Workers() as workers:
        tell("ios")
        beside = _in_steps(ios, workers)
        rows = []
        for name, rule in _rules().items():
            tell(name)
            rows += [
                _share(name, _in_steps(rule, workers), beside),
                _long(name, rule, ios, workers),
            ]
    about = (
        f"rules by inner products ÷ IOS: {3 * COPIES} runs with one rule, timed within real steps "
        f"(share), and messages of 10 × {LENGTH:,} (long)"
    )
    return Result("field", about, rows)


def _rules() -> dict[str, Aggregator]:
    """All rules that read inner products and nothing else, and some behind what may come first.

    They are told that one input is poisoned wherever they can bear that.
    """
    names = [
        name
        for name, kind in AGGREGATORS.items()
        if issubclass(kind, WeightedAggregator) and kind.reads == "gram" and name != "ios"
    ]
    names += [f"{before}+ios" for before in BEFORE] + ["nnm+krum", "nnm+rfa"]
    found = {}
    for name in names:
        rule = aggregators.create(name)
        if "estimate" in vars(rule):
            rule = aggregators.create(name, estimate="up_to_1")
        if not rule.remembers() and not rule.samples_judged() and not rule.sums_updates():
            found[name] = rule
    return found


def _in_steps(rule: Aggregator, workers: Workers) -> float:
    """The median seconds of aggregation in steps of as many runs as ``share`` has."""
    flip = attacks.create("label_flip")
    runs = [Run(create(place), rule, flip) for place in NETWORK_TITLES for _ in range(COPIES)]
    engine = mnist_engine(runs, workers)
    return statistics.median(halves(engine, rounds=9)["aggregation"])


def _share(name: str, rule: float, ios: float) -> Row:
    told = f"{1000 * rule:.1f} against {1000 * ios:.1f} ms"
    return Row(f"share, {name} ÷ IOS", rule / ios, LIMIT, "", told)


def _long(name: str, rule: Aggregator, ios: Aggregator, workers: Workers) -> Row:
    network = create("two_castle")
    messages = torch.randn(1, network.agents, LENGTH)
    out = torch.empty_like(messages)

    def aggregates(rule: Aggregator) -> Callable[[], Any]:
        exchange = Exchange([rule], [network], map=workers.map)

        def aggregate() -> None:
            with workers.alone():
                exchange(messages, out=out)

        return aggregate

    seconds = interleaved({"rule": aggregates(rule), "ios": aggregates(ios)}, rounds=5, warm=1)
    told = f"{milliseconds(seconds['rule']):.0f} against {milliseconds(seconds['ios']):.0f} ms"
    return Row(f"long, {name} ÷ IOS", ratio(seconds, "rule", "ios"), LIMIT, "", told)
