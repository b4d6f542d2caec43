"""How long planning a sweep takes."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._measure import Result, Row, interleaved, milliseconds
from bezoar.experiments import Store, expand, make_plan

#: 1,000 specs.
DOCUMENT = {
    "network": ["two_castle", "line", "fan", "ring", "complete"],
    "aggregator": [
        *("weighted_mean", "trimmed_mean", "faba", "centered_clipping", "clipped_gossip"),
        *("ios", "rfa", "lfighter", "mean", "median"),
    ],
    "partition": ["iid", "by_class"],
    "seed": list(range(10)),
}


def plan() -> Result:
    """``make_plan`` of 1,000 specs: the first time in a process, and once everything is known."""
    specs = expand(DOCUMENT)
    assert len(specs) == 1000
    store = Store(Path("there is none"))
    first = _seconds(lambda: make_plan(specs, store))
    sides = {
        "read": lambda: expand(DOCUMENT),
        "plan": lambda: make_plan(specs, store),
    }
    seconds = interleaved(sides, rounds=5, warm=0)
    again = milliseconds(seconds["plan"])
    return Result(
        "plan",
        "planning a sweep of 1,000 runs",
        [
            Row("first in a process", first, 1.0, " s", "reading MNIST and drawing partitions too"),
            Row(
                "again",
                again / 1000,
                1.0,
                " s",
                f"reading 1,000 specs: {milliseconds(seconds['read']):.0f} ms",
            ),
        ],
    )


def _seconds(work: Callable[[], Any]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before
